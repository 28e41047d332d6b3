#include "tests/realnet/disk_trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

namespace detcd::realnet {
namespace {

using ::detcd::testing::MemoryDisk;
using ::detcd::testing::MemoryEntry;
using ::detcd::testing::MemoryFolder;
using ::detcd::testing::MemoryInode;

// Recursive: a hook may use files of its own.
std::recursive_mutex mutex;
std::vector<DiskTrace*> traces;  // those that record

// `a/b/c` or `a/b/c/` to `a/b` and `c`.
std::pair<std::string, std::string> Split(std::string path) {
  if (path.ends_with('/')) path.pop_back();
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

void AddFolder(const MemoryFolder& folder, const std::string& prefix, DiskTree& tree) {
  for (const auto& [name, entry] : folder.entries) {
    if (entry.file) tree[prefix + name] = entry.file->content;
    if (!entry.folder) continue;
    tree[prefix + name + "/"];
    AddFolder(*entry.folder, prefix + name + "/", tree);
  }
}

}  // namespace

std::string Describe(const DiskCall& call) {
  const std::string node = " (node " + std::to_string(call.node) + ")";
  switch (call.kind) {
    case DiskCall::Kind::kMakeFolder:
      return "made folder " + call.name + node;
    case DiskCall::Kind::kMakeFile:
      return "made file " + call.name + node;
    case DiskCall::Kind::kRename:
      return "renamed " + call.name + " to " + call.to + node;
    case DiskCall::Kind::kRemove:
      return "removed " + call.name + node;
    case DiskCall::Kind::kWrite:
      return "wrote " + std::to_string(call.bytes.size()) + " bytes at " + std::to_string(call.offset) + node;
    case DiskCall::Kind::kResize:
      return "resized to " + std::to_string(call.size) + node;
    case DiskCall::Kind::kSync:
      return "synced" + node;
  }
  return {};
}

DiskTree ReadTree(const std::string& folder) {
  DiskTree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string().substr(folder.size() + 1);
    if (entry.is_directory()) {
      tree[path + "/"];
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    tree[path].assign(std::istreambuf_iterator<char>(file), {});
  }
  return tree;
}

void WriteTree(const DiskTree& tree, const std::string& folder) {
  for (const auto& [path, content] : tree) {  // a folder comes before what is in it
    const std::string full = folder + "/" + path;
    if (path.ends_with('/')) {
      std::filesystem::create_directory(full);
    } else if (!(std::ofstream(full, std::ios::binary) << content).flush()) {
      throw std::runtime_error("write of " + full);
    }
  }
}

DiskTree TreeOf(MemoryDisk& disk) {
  DiskTree tree;
  AddFolder(disk.root(), "", tree);
  return tree;
}

DiskTrace::DiskTrace(const std::string& folder, Hook hook) : hook_(std::move(hook)), beginning_(ReadTree(folder)) {
  const std::lock_guard lock(mutex);
  const auto add = [&](const std::string& path, NodeId node) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) throw std::runtime_error("stat of " + path);
    nodes_[{status.st_dev, status.st_ino}] = node;
  };
  add(folder, 0);
  for (const auto& [path, content] : beginning_) add(folder + "/" + path, ++last_node_);
  traces.push_back(this);
}

void DiskTrace::End() {
  const std::lock_guard lock(mutex);
  std::erase(traces, this);
}

size_t DiskTrace::count() const {
  const std::lock_guard lock(mutex);
  return calls_.size();
}

void DiskTrace::WhileStill(const std::function<void()>& work) {
  const std::lock_guard lock(mutex);
  work();
}

const NodeId* DiskTrace::Find(int descriptor) const {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return nullptr;
  const auto found = nodes_.find({status.st_dev, status.st_ino});
  return found == nodes_.end() ? nullptr : &found->second;
}

void DiskTrace::OnMade(DiskCall::Kind kind, int folder, std::string_view name) {
  const NodeId* parent = Find(folder);
  if (parent == nullptr) return;
  const NodeId node = *parent;
  const NodeId made = ++last_node_;
  struct stat status = {};
  if (::fstatat(folder, std::string(name).c_str(), &status, 0) != 0) throw std::runtime_error("stat of a new entry");
  nodes_[{status.st_dev, status.st_ino}] = made;  // the inode number of a removed file may come again
  calls_.push_back({.kind = kind, .node = node, .made = made, .name = std::string(name)});
  if (hook_) hook_(calls_.back(), folder);
}

void DiskTrace::OnCall(DiskCall call, int descriptor) {
  const NodeId* node = Find(descriptor);
  if (node == nullptr) return;
  call.node = *node;
  calls_.push_back(std::move(call));
  if (hook_) hook_(calls_.back(), descriptor);
}

void ApplyCalls(const DiskTree& beginning, const std::vector<DiskCall>& calls, size_t count, MemoryDisk& disk) {
  std::unordered_map<NodeId, std::shared_ptr<MemoryInode>> files;
  std::unordered_map<NodeId, std::shared_ptr<MemoryFolder>> folders;
  folders[0] = disk.Folder("");
  NodeId last = 0;
  for (const auto& [path, content] : beginning) {
    const auto [parent, name] = Split(path);
    if (path.ends_with('/')) {
      const auto folder = folders[++last] = std::make_shared<MemoryFolder>();
      disk.Folder(parent)->entries[name].folder = folder;
      disk.Folder(parent)->Sync();
    } else {
      disk.Put(path, content);
      files[++last] = disk.File(path);
    }
  }
  for (const DiskCall& call : std::span(calls).first(count)) {
    switch (call.kind) {
      case DiskCall::Kind::kMakeFolder:
        folders[call.made] = std::make_shared<MemoryFolder>();
        folders.at(call.node)->Apply(
            {.from = "", .to = call.name, .made = {.file = nullptr, .folder = folders[call.made]}});
        break;
      case DiskCall::Kind::kMakeFile:
        files[call.made] = std::make_shared<MemoryInode>();
        folders.at(call.node)->Apply(
            {.from = "", .to = call.name, .made = {.file = files[call.made], .folder = nullptr}});
        break;
      case DiskCall::Kind::kRename:
        folders.at(call.node)->Apply({.from = call.name, .to = call.to, .made = {}});
        break;
      case DiskCall::Kind::kRemove:
        folders.at(call.node)->Apply({.from = call.name, .to = "", .made = {}});
        break;
      case DiskCall::Kind::kWrite:
        files.at(call.node)->Write(call.offset, call.bytes);
        break;
      case DiskCall::Kind::kResize:
        files.at(call.node)->Resize(call.size);
        break;
      case DiskCall::Kind::kSync:
        if (const auto file = files.find(call.node); file != files.end()) {
          file->second->Sync();
        } else {
          folders.at(call.node)->Sync();
        }
        break;
    }
  }
}

namespace {

// Does `call` with no other one under way; `record` hears a trace when it succeeded.
template <class Call, class Record>
auto Traced(Call call, Record record) {
  const std::lock_guard lock(mutex);
  const auto result = call();
  if (result >= 0) {
    const int error = errno;
    for (DiskTrace* trace : std::vector<DiskTrace*>(traces)) record(*trace, result);
    errno = error;
  }
  return result;
}

uint64_t SizeOf(int descriptor) {
  struct stat status = {};
  return ::fstat(descriptor, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

}  // namespace
}  // namespace detcd::realnet

// The linker gives `__wrap_x` to those who call x, and x to `__real_x`.
extern "C" {
int __real_openat(int directory, const char* name, int flags, ...);
int __real_mkdir(const char* path, mode_t mode);
int __real_renameat(int from_directory, const char* from, int to_directory, const char* to);
int __real_unlinkat(int directory, const char* name, int flags);
ssize_t __real_pwrite(int descriptor, const void* bytes, size_t size, off_t offset);
ssize_t __real_pwritev(int descriptor, const iovec* vectors, int count, off_t offset);
int __real_fallocate(int descriptor, int mode, off_t offset, off_t size);
int __real_ftruncate(int descriptor, off_t size);
int __real_fdatasync(int descriptor);
int __real_fsync(int descriptor);

using detcd::realnet::DiskCall;
using detcd::realnet::DiskTrace;
using detcd::realnet::SizeOf;
using detcd::realnet::Traced;

int __wrap_openat(int directory, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  bool is_new = false;
  return Traced(
      [&] {
        is_new = (flags & O_CREAT) != 0 && ::faccessat(directory, name, F_OK, 0) != 0;
        return __real_openat(directory, name, flags, mode);
      },
      [&](DiskTrace& trace, int) {
        if (is_new) trace.OnMade(DiskCall::Kind::kMakeFile, directory, name);
      });
}

int __wrap_mkdir(const char* path, mode_t mode) {
  return Traced([&] { return __real_mkdir(path, mode); },
                [&](DiskTrace& trace, int) {
                  const std::filesystem::path full(path);
                  const int parent = ::open(full.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                  trace.OnMade(DiskCall::Kind::kMakeFolder, parent, full.filename().string());
                  ::close(parent);
                });
}

int __wrap_renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return Traced([&] { return __real_renameat(from_directory, from, to_directory, to); },
                [&](DiskTrace& trace, int) {
                  trace.OnCall({.kind = DiskCall::Kind::kRename, .name = from, .to = to}, from_directory);
                });
}

int __wrap_unlinkat(int directory, const char* name, int flags) {
  return Traced(
      [&] { return __real_unlinkat(directory, name, flags); },
      [&](DiskTrace& trace, int) { trace.OnCall({.kind = DiskCall::Kind::kRemove, .name = name}, directory); });
}

ssize_t __wrap_pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  return Traced(
      [&] { return __real_pwrite(descriptor, bytes, size, offset); },
      [&](DiskTrace& trace, ssize_t written) {
        std::string kept(static_cast<const char*>(bytes), static_cast<size_t>(written));
        trace.OnCall(
            {.kind = DiskCall::Kind::kWrite, .offset = static_cast<uint64_t>(offset), .bytes = std::move(kept)},
            descriptor);
      });
}

ssize_t __wrap_pwritev(int descriptor, const iovec* vectors, int count, off_t offset) {
  return Traced(
      [&] { return __real_pwritev(descriptor, vectors, count, offset); },
      [&](DiskTrace& trace, ssize_t written) {
        std::string kept;
        for (int i = 0; i < count; ++i) kept.append(static_cast<char*>(vectors[i].iov_base), vectors[i].iov_len);
        kept.resize(static_cast<size_t>(written));
        trace.OnCall(
            {.kind = DiskCall::Kind::kWrite, .offset = static_cast<uint64_t>(offset), .bytes = std::move(kept)},
            descriptor);
      });
}

int __wrap_fallocate(int descriptor, int mode, off_t offset, off_t size) {
  return Traced([&] { return __real_fallocate(descriptor, mode, offset, size); },
                [&](DiskTrace& trace, int) {
                  trace.OnCall({.kind = DiskCall::Kind::kResize, .size = SizeOf(descriptor)}, descriptor);
                });
}

int __wrap_ftruncate(int descriptor, off_t size) {
  return Traced([&] { return __real_ftruncate(descriptor, size); },
                [&](DiskTrace& trace, int) {
                  trace.OnCall({.kind = DiskCall::Kind::kResize, .size = static_cast<uint64_t>(size)}, descriptor);
                });
}

int __wrap_fdatasync(int descriptor) {
  return Traced([&] { return __real_fdatasync(descriptor); },
                [&](DiskTrace& trace, int) { trace.OnCall({.kind = DiskCall::Kind::kSync}, descriptor); });
}

int __wrap_fsync(int descriptor) {
  return Traced([&] { return __real_fsync(descriptor); },
                [&](DiskTrace& trace, int) { trace.OnCall({.kind = DiskCall::Kind::kSync}, descriptor); });
}
}  // extern "C"
