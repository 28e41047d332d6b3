#include "tests/support/memory_files.h"

#include <algorithm>
#include <utility>

namespace detcd::testing {
namespace {

std::pair<std::string_view, std::string_view> SplitLast(std::string_view path) {
  size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

std::string MemoryInode::SectorOf(const std::string& bytes, uint64_t sector) const {
  std::string out;
  if (sector * kSectorBytes < bytes.size()) out = bytes.substr(sector * kSectorBytes, kSectorBytes);
  out.resize(kSectorBytes, '\0');
  return out;
}

void MemoryInode::Note(uint64_t first, uint64_t limit) {
  for (uint64_t sector = first / kSectorBytes; sector * kSectorBytes < limit; ++sector) {
    auto [it, fresh] = sectors_.try_emplace(sector);
    if (fresh) it->second.push_back(SectorOf(durable_, sector));
    std::string now = SectorOf(content, sector);
    if (now != it->second.back()) it->second.push_back(std::move(now));
  }
}

void MemoryInode::Write(uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  if (content.size() < offset + bytes.size()) Resize(offset + bytes.size());
  content.replace(offset, bytes.size(), bytes);
  Note(offset, offset + bytes.size());
}

void MemoryInode::Resize(uint64_t size) {
  uint64_t before = content.size();
  if (size == before) return;
  content.resize(size, '\0');
  sizes_.push_back(size);
  if (size < before) Note(size, before);
}

void MemoryInode::Sync() {
  durable_ = content;
  sectors_.clear();
  sizes_ = {content.size()};
}

void MemoryInode::Crash(const Chooser& choose) {
  uint64_t size = sizes_[choose(sizes_.size())];
  std::string after = durable_;
  after.resize(std::max<uint64_t>(after.size(), content.size()), '\0');
  for (auto& [sector, versions] : sectors_) {
    size_t pick = choose(versions.size());
    if (after.size() < (sector + 1) * kSectorBytes) after.resize((sector + 1) * kSectorBytes, '\0');
    after.replace(sector * kSectorBytes, kSectorBytes, versions[pick]);
  }
  after.resize(size, '\0');
  content = std::move(after);
  Sync();
}

void MemoryFolder::ApplyTo(std::map<std::string, MemoryEntry, std::less<>>& map, const Change& change) {
  if (change.from.empty()) {
    map.try_emplace(change.to, change.made);
    return;
  }
  auto node = map.extract(change.from);
  if (node.empty() || change.to.empty()) return;
  map[change.to] = node.mapped();
}

void MemoryFolder::Apply(const Change& change) {
  ApplyTo(entries, change);
  changes.push_back(change);
}

void MemoryFolder::Sync() {
  durable = entries;
  changes.clear();
}

void MemoryFolder::Crash(const Chooser& choose) {
  for (const Change& change : changes) {
    if (choose(2) == 1) ApplyTo(durable, change);
  }
  entries = durable;
  changes.clear();
  for (auto& [name, entry] : entries) {
    if (entry.file) entry.file->Crash(choose);
    if (entry.folder) entry.folder->Crash(choose);
  }
}

std::shared_ptr<MemoryFolder> MemoryDisk::Folder(std::string_view path) {
  std::shared_ptr<MemoryFolder> at = root_;
  while (at && !path.empty()) {
    std::string_view name = path.substr(0, path.find('/'));
    auto it = at->entries.find(name);
    at = it == at->entries.end() ? nullptr : it->second.folder;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return at;
}

std::shared_ptr<MemoryInode> MemoryDisk::File(std::string_view path) {
  auto [folder_path, name] = SplitLast(path);
  std::shared_ptr<MemoryFolder> folder = Folder(folder_path);
  if (!folder) return nullptr;
  auto it = folder->entries.find(name);
  return it == folder->entries.end() ? nullptr : it->second.file;
}

void MemoryDisk::Put(std::string_view path, std::string content) {
  std::shared_ptr<MemoryFolder> at = root_;
  auto [folders, name] = SplitLast(path);
  while (!folders.empty()) {
    std::string_view part = folders.substr(0, folders.find('/'));
    MemoryEntry& entry = at->entries[std::string(part)];
    if (!entry.folder) entry.folder = std::make_shared<MemoryFolder>();
    at->Sync();
    at = entry.folder;
    folders.remove_prefix(std::min(folders.size(), part.size() + 1));
  }
  auto inode = std::make_shared<MemoryInode>();
  inode->content = std::move(content);
  inode->Sync();
  at->entries[std::string(name)] = MemoryEntry{.file = inode, .folder = nullptr};
  at->Sync();
}

std::map<std::string, std::string> MemoryDisk::Files() {
  std::map<std::string, std::string> files;
  std::function<void(MemoryFolder&, std::string)> walk = [&](MemoryFolder& folder, std::string prefix) {
    for (auto& [name, entry] : folder.entries) {
      if (entry.file) files[prefix + name] = entry.file->content;
      if (entry.folder) walk(*entry.folder, prefix + name + "/");
    }
  };
  walk(*root_, "");
  return files;
}

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryFiles& files, std::shared_ptr<MemoryFiles::Handle> handle) : files_(files), handle_(std::move(handle)) {}
  ~MemoryFile() override { files_.Close(*handle_); }

  void WriteAt(uint64_t offset, std::span<const Bytes> pieces, FileToken token) override {
    std::string bytes;
    for (const Bytes& piece : pieces) bytes.append(piece.view());
    files_.Add(handle_, "write " + handle_->name, token, [h = handle_, offset, bytes = std::move(bytes)] {
      h->file->Write(offset, bytes);
      return FileResult();
    });
  }
  void ReadAt(uint64_t offset, uint64_t size, FileToken token) override {
    files_.Add(handle_, "read " + handle_->name, token, [h = handle_, offset, size] {
      FileResult result;
      const std::string& content = h->file->content;
      if (offset < content.size()) result.data = Bytes::Copy(std::string_view(content).substr(offset, size));
      return result;
    });
  }
  void Preallocate(uint64_t size, FileToken token) override {
    files_.Add(handle_, "preallocate " + handle_->name, token, [h = handle_, size] {
      if (h->file->content.size() < size) h->file->Resize(size);
      return FileResult();
    });
  }
  void Truncate(uint64_t size, FileToken token) override {
    files_.Add(handle_, "truncate " + handle_->name, token, [h = handle_, size] {
      h->file->Resize(size);
      return FileResult();
    });
  }
  void Sync(FileToken token) override {
    files_.Add(handle_, "sync " + handle_->name, token, [h = handle_] {
      h->file->Sync();
      return FileResult();
    }, true);
  }

 private:
  MemoryFiles& files_;
  std::shared_ptr<MemoryFiles::Handle> handle_;
};

class MemoryDirectory final : public Directory {
 public:
  MemoryDirectory(MemoryFiles& files, std::shared_ptr<MemoryFiles::Handle> handle)
      : files_(files), handle_(std::move(handle)) {}
  ~MemoryDirectory() override { files_.Close(*handle_); }

  std::unique_ptr<File> Open(std::string_view name, OpenMode mode, FileListener& listener, FileToken token) override {
    auto file = std::make_shared<MemoryFiles::Handle>();
    file->name = std::string(name);
    file->listener = &listener;
    files_.Add(file, "open " + file->name, token, [this_files = &files_, folder = handle_, file, mode] {
      FileResult result;
      auto fail = [&](IoError error) {
        file->open_error = result.error = error;
        return result;
      };
      if (folder->open_error != IoError::kOk) return fail(folder->open_error);
      auto it = folder->folder->entries.find(file->name);
      bool there = it != folder->folder->entries.end();
      if (mode == OpenMode::kCreateNew && there) return fail(IoError::kExists);
      if (!there && (mode == OpenMode::kRead || mode == OpenMode::kWrite)) return fail(IoError::kNotFound);
      if (!there) {
        folder->folder->Apply({.from = "", .to = file->name, .made = {std::make_shared<MemoryInode>(), nullptr}});
        it = folder->folder->entries.find(file->name);
      }
      if (!it->second.file) return fail(IoError::kInvalid);
      file->file = it->second.file;
      if (mode != OpenMode::kRead) {
        if (this_files->locks_[file->file.get()] > 0) return fail(IoError::kLocked);
        this_files->locks_[file->file.get()] = 1;
        file->locks = true;
      }
      result.size = file->file->content.size();
      return result;
    });
    return std::make_unique<MemoryFile>(files_, file);
  }
  void Rename(std::string_view from, std::string_view to, FileToken token) override {
    files_.Add(handle_, "rename " + std::string(to), token, [h = handle_, from = std::string(from), to = std::string(to)] {
      FileResult result;
      if (h->folder->entries.find(from) == h->folder->entries.end()) {
        result.error = IoError::kNotFound;
      } else {
        h->folder->Apply({.from = from, .to = to, .made = {}});
      }
      return result;
    });
  }
  void Unlink(std::string_view name, FileToken token) override {
    files_.Add(handle_, "unlink " + std::string(name), token, [h = handle_, name = std::string(name)] {
      FileResult result;
      auto it = h->folder->entries.find(name);
      if (it == h->folder->entries.end()) {
        result.error = IoError::kNotFound;
      } else if (it->second.folder && !it->second.folder->entries.empty()) {
        result.error = IoError::kExists;
      } else {
        h->folder->Apply({.from = name, .to = "", .made = {}});
      }
      return result;
    });
  }
  void List(FileToken token) override {
    files_.Add(handle_, "list " + handle_->name, token, [h = handle_] {
      FileResult result;
      for (auto& [name, entry] : h->folder->entries) result.names.push_back(name);
      return result;
    });
  }
  void Sync(FileToken token) override {
    files_.Add(handle_, "sync " + handle_->name, token, [h = handle_] {
      h->folder->Sync();
      return FileResult();
    }, true);
  }

 private:
  MemoryFiles& files_;
  std::shared_ptr<MemoryFiles::Handle> handle_;
};

MemoryFiles::~MemoryFiles() = default;

std::unique_ptr<Directory> MemoryFiles::OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                                      FileToken token) {
  auto handle = std::make_shared<Handle>();
  handle->name = "/" + std::string(path);
  handle->listener = &listener;
  Add(handle, "open " + handle->name, token, [this, handle, create, path = std::string(path)] {
    FileResult result;
    std::shared_ptr<MemoryFolder> at = disk_.Folder("");
    std::string_view rest = path;
    while (!rest.empty()) {
      std::string name(rest.substr(0, rest.find('/')));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      if (at->entries.find(name) == at->entries.end()) {
        if (!create) {
          handle->open_error = result.error = IoError::kNotFound;
          return result;
        }
        at->Apply({.from = "", .to = name, .made = {nullptr, std::make_shared<MemoryFolder>()}});
      }
      at = at->entries.find(name)->second.folder;
    }
    handle->folder = at;
    return result;
  });
  return std::make_unique<MemoryDirectory>(*this, handle);
}

void MemoryFiles::Add(std::shared_ptr<Handle> handle, std::string operation, FileToken token,
                      std::function<FileResult()> run, bool is_sync) {
  calls_.push_back({std::move(handle), std::move(operation), token, is_sync, std::move(run)});
}

void MemoryFiles::Close(Handle& handle) {
  handle.live = false;
  if (handle.locks) locks_[handle.file.get()] = 0;
}

bool MemoryFiles::Step() {
  if (calls_.empty()) return false;
  Call call = std::move(calls_.front());
  calls_.pop_front();
  ++calls_run_;
  if (on_call) on_call(call.operation);
  bool fails = fail_call_ != 0 && (calls_run_ == fail_call_ || (fail_on_ && calls_run_ > fail_call_));
  bool opens = call.operation.starts_with("open ");
  FileResult result;
  if (!opens && call.handle->open_error != IoError::kOk) {
    result.error = call.handle->open_error;
  } else if (fails) {
    // A failed write may have happened; a failed sync made nothing durable.
    if (!call.is_sync && !opens) call.run();
    result = FileResult();
    result.error = fail_error_;
    if (opens) call.handle->open_error = fail_error_;
  } else {
    result = call.run();
  }
  if (call.handle->live) call.handle->listener->OnFileDone(call.token, std::move(result));
  return true;
}

void MemoryFiles::StartPending() {
  for (; !calls_.empty(); calls_.pop_front()) {
    Call& call = calls_.front();
    bool opens = call.operation.starts_with("open ");
    if (!call.is_sync && (opens || call.handle->open_error == IoError::kOk)) call.run();
  }
}

}  // namespace detcd::testing
