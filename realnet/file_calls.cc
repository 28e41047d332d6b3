#include "realnet/file_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include "realnet/os_error.h"

namespace detcd::realnet {
namespace {

constexpr size_t kPiecesPerWrite = 512;           // the kernel's limit is 1024
constexpr uint64_t kZeroBytesPerWrite = 262'144;
constexpr uint64_t kOffsetMax = static_cast<uint64_t>(std::numeric_limits<off_t>::max());

// The result of `call`, repeated while signals interrupt it.
template <class Call>
auto Uninterrupted(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

template <class Call>
IoError ErrorOf(Call call) {
  return Uninterrupted(call) < 0 ? FileError(errno) : IoError::kOk;
}

bool Fits(uint64_t offset, uint64_t size) { return offset <= kOffsetMax && size <= kOffsetMax - offset; }

IoError SizeOf(int descriptor, uint64_t& size) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return FileError(errno);
  size = static_cast<uint64_t>(status.st_size);
  return IoError::kOk;
}

IoError Lock(int descriptor) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;  // with start and length 0: all of the file, however long it grows
  if (::fcntl(descriptor, F_OFD_SETLK, &lock) == 0) return IoError::kOk;
  return errno == EAGAIN || errno == EACCES ? IoError::kLocked : FileError(errno);
}

int OpenFlags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead: return O_RDONLY | O_CLOEXEC;
    case OpenMode::kWrite: return O_RDWR | O_CLOEXEC;
    case OpenMode::kCreate: return O_RDWR | O_CREAT | O_CLOEXEC;
    case OpenMode::kCreateNew: return O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  }
  return O_RDONLY | O_CLOEXEC;
}

int OpenFolderDescriptor(const std::string& path) {
  return Uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
}

// Makes the folder `path` and what is missing above it.
IoError MakeFolders(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode) ? IoError::kOk : IoError::kInvalid;
  const size_t slash = path.find_last_of('/');
  std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
  if (parent.empty()) parent = "/";
  if (parent != "/" && parent != ".") {
    if (const IoError error = MakeFolders(parent); error != IoError::kOk) return error;
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FileError(errno);
  const int descriptor = OpenFolderDescriptor(parent);
  // A parent that lets us pass and make entries but not read (mode 0733) cannot be synced: its owner's choice.
  if (descriptor < 0) return errno == EACCES ? IoError::kOk : FileError(errno);
  const IoError synced = SyncFolder(descriptor);
  ::close(descriptor);
  return synced;
}

// Where fallocate is not to be had.
IoError WriteZeros(int descriptor, uint64_t from, uint64_t to) {
  const std::vector<char> zeros(static_cast<size_t>(std::min(kZeroBytesPerWrite, to - from)));
  while (from < to) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(zeros.size(), to - from));
    const ssize_t written =
        Uninterrupted([&] { return ::pwrite(descriptor, zeros.data(), wanted, static_cast<off_t>(from)); });
    if (written < 0) return FileError(errno);
    from += static_cast<uint64_t>(written);
  }
  return IoError::kOk;
}

}  // namespace

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

OpenedFile OpenFile(int directory, const std::string& name, OpenMode mode) {
  OpenedFile opened;
  opened.descriptor = Uninterrupted([&] { return ::openat(directory, name.c_str(), OpenFlags(mode), 0600); });
  if (opened.descriptor < 0) return {.error = FileError(errno)};
  struct stat status;
  if (::fstat(opened.descriptor, &status) != 0) {
    opened.error = FileError(errno);
  } else if (!S_ISREG(status.st_mode)) {
    opened.error = IoError::kInvalid;
  } else if (mode != OpenMode::kRead) {
    opened.error = Lock(opened.descriptor);
  }
  if (opened.error == IoError::kOk) {
    // Read under the lock: the last owner may have written until now.
    opened.error = SizeOf(opened.descriptor, opened.size);
  }
  if (opened.error != IoError::kOk) {
    ::close(opened.descriptor);
    opened.descriptor = -1;
  }
  return opened;
}

OpenedFile OpenFolder(const std::string& path, bool create) {
  if (create) {
    if (const IoError error = MakeFolders(path); error != IoError::kOk) return {.error = error};
  }
  const int descriptor = OpenFolderDescriptor(path);
  if (descriptor < 0) return {.error = FileError(errno)};
  return {.descriptor = descriptor};
}

IoError WriteAll(int descriptor, uint64_t offset, const std::vector<Bytes>& pieces) {
  iovec vectors[kPiecesPerWrite];
  size_t piece = 0;
  size_t done = 0;  // bytes of pieces[piece] that are written
  while (true) {
    size_t count = 0;
    uint64_t wanted = 0;
    for (size_t i = piece; i < pieces.size() && count < kPiecesPerWrite; ++i) {
      const size_t skip = i == piece ? done : 0;
      vectors[count++] = {.iov_base = const_cast<char*>(pieces[i].data() + skip), .iov_len = pieces[i].size() - skip};
      wanted += pieces[i].size() - skip;
    }
    if (count == 0) return IoError::kOk;
    if (!Fits(offset, wanted)) return IoError::kInvalid;
    size_t written = 0;
    if (wanted > 0) {
      const ssize_t result = Uninterrupted(
          [&] { return ::pwritev(descriptor, vectors, static_cast<int>(count), static_cast<off_t>(offset)); });
      if (result < 0) return FileError(errno);
      if (result == 0) return IoError::kDevice;
      written = static_cast<size_t>(result);
    }
    offset += written;
    done += written;
    while (piece < pieces.size() && done >= pieces[piece].size()) done -= pieces[piece++].size();
  }
}

IoError ReadUpTo(int descriptor, uint64_t offset, uint64_t size, Bytes& out) {
  uint64_t file_size = 0;
  if (const IoError error = SizeOf(descriptor, file_size); error != IoError::kOk) return error;
  // What is asked for beyond the end needs no memory.
  const size_t wanted = static_cast<size_t>(offset < file_size ? std::min(size, file_size - offset) : 0);
  size_t done = 0;
  IoError error = IoError::kOk;
  const Bytes buffer = Bytes::Build(wanted, [&](char* start) {
    while (done < wanted) {
      const ssize_t got = Uninterrupted(
          [&] { return ::pread(descriptor, start + done, wanted - done, static_cast<off_t>(offset + done)); });
      if (got < 0) error = FileError(errno);
      if (got <= 0) return;
      done += static_cast<size_t>(got);
    }
  });
  if (error == IoError::kOk) out = buffer.Slice(0, done);
  return error;
}

// fallocate, not zeros: it takes no time on the log's thread, while 64 MB of zeros would hold up the syncs of the
// segment in use, and it writes nothing twice. The price is that the first sync over a part of the file converts its
// extents (1.3 to 1.5 times the latency of a sync over written zeros, measured), which group commit shares out.
IoError AllocateTo(int descriptor, uint64_t size) {
  if (size == 0) return IoError::kOk;
  if (!Fits(0, size)) return IoError::kNoSpace;
  const int result = Uninterrupted([&] { return ::fallocate(descriptor, 0, 0, static_cast<off_t>(size)); });
  if (result == 0) return IoError::kOk;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return FileError(errno);
  uint64_t present = 0;
  if (const IoError error = SizeOf(descriptor, present); error != IoError::kOk) return error;
  return present < size ? WriteZeros(descriptor, present, size) : IoError::kOk;
}

IoError TruncateTo(int descriptor, uint64_t size) {
  if (!Fits(0, size)) return IoError::kInvalid;
  return ErrorOf([&] { return ::ftruncate(descriptor, static_cast<off_t>(size)); });
}

// An interrupted sync is no verdict on the pages; any other failure is (the caller stops).
IoError SyncFile(int descriptor) {
  return ErrorOf([&] { return ::fdatasync(descriptor); });
}

IoError SyncFolder(int descriptor) {
  return ErrorOf([&] { return ::fsync(descriptor); });
}

IoError RenameEntry(int directory, const std::string& from, const std::string& to) {
  return ErrorOf([&] { return ::renameat(directory, from.c_str(), directory, to.c_str()); });
}

IoError RemoveEntry(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) == 0) return IoError::kOk;
  if (errno != EISDIR) return FileError(errno);
  return ErrorOf([&] { return ::unlinkat(directory, name.c_str(), AT_REMOVEDIR); });
}

IoError ListEntries(int directory, std::vector<std::string>& names) {
  // A description of its own: the position of reading is the description's.
  const int descriptor = Uninterrupted([&] { return ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return FileError(errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(descriptor), ::closedir);
  if (stream == nullptr) {
    const int error = errno;
    ::close(descriptor);
    return FileError(error);
  }
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return FileError(errno);
  std::sort(names.begin(), names.end());
  return IoError::kOk;
}

}  // namespace detcd::realnet
