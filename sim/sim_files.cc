#include "sim/sim_files.h"

#include <algorithm>

#include "core/base/check.h"

namespace detcd::sim {
namespace {

bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace

class SimFile final : public File {
 public:
  SimFile(SimFiles* files, uint64_t id) : files_(files), id_(id) {}
  ~SimFile() override {
    if (files_ != nullptr) files_->Close(id_);
  }
  void WriteAt(uint64_t offset, std::span<const Bytes> pieces, FileToken token) override {
    Submit({.call = SimFiles::Call::kWrite, .token = token, .offset = offset,
            .pieces = std::vector<Bytes>(pieces.begin(), pieces.end())});
  }
  void ReadAt(uint64_t offset, uint64_t size, FileToken token) override {
    Submit({.call = SimFiles::Call::kRead, .token = token, .offset = offset, .size = size});
  }
  void Preallocate(uint64_t size, FileToken token) override {
    Submit({.call = SimFiles::Call::kPreallocate, .token = token, .size = size});
  }
  void Truncate(uint64_t size, FileToken token) override {
    Submit({.call = SimFiles::Call::kTruncate, .token = token, .size = size});
  }
  void Sync(FileToken token) override { Submit({.call = SimFiles::Call::kSync, .token = token}); }
  void Detach() { files_ = nullptr; }

 private:
  void Submit(SimFiles::Operation operation) {
    if (files_ != nullptr) files_->Submit(id_, std::move(operation));
  }
  SimFiles* files_;
  uint64_t id_;
};

class SimDirectory final : public Directory {
 public:
  SimDirectory(SimFiles* files, uint64_t id) : files_(files), id_(id) {}
  ~SimDirectory() override {
    if (files_ != nullptr) files_->Close(id_);
  }
  std::unique_ptr<File> Open(std::string_view name, OpenMode mode, FileListener& listener, FileToken token) override {
    if (files_ == nullptr) return std::make_unique<SimFile>(nullptr, 0);
    const uint64_t child = files_->Make(listener);
    auto file = std::make_unique<SimFile>(files_, child);
    files_->Find(child)->file = file.get();
    Submit({.call = SimFiles::Call::kOpen, .token = token, .child = child, .mode = mode, .name = std::string(name)});
    return file;
  }
  void Rename(std::string_view from, std::string_view to, FileToken token) override {
    Submit({.call = SimFiles::Call::kRename, .token = token, .name = std::string(from), .to = std::string(to)});
  }
  void Unlink(std::string_view name, FileToken token) override {
    Submit({.call = SimFiles::Call::kUnlink, .token = token, .name = std::string(name)});
  }
  void List(FileToken token) override { Submit({.call = SimFiles::Call::kList, .token = token}); }
  void Sync(FileToken token) override { Submit({.call = SimFiles::Call::kSyncFolder, .token = token}); }
  void Detach() { files_ = nullptr; }

 private:
  void Submit(SimFiles::Operation operation) {
    if (files_ != nullptr) files_->Submit(id_, std::move(operation));
  }
  SimFiles* files_;
  uint64_t id_;
};

SimFiles::SimFiles(SimContext& context, Inboxes& inboxes, EndpointId endpoint, const DiskKnobs& knobs)
    : context_(context),
      inboxes_(inboxes),
      endpoint_(endpoint),
      knobs_(knobs),
      random_(context.Random("sim/disk").Sub(endpoint)),
      crash_random_(context.Random("sim/disk/crash").Sub(endpoint)) {}

// --- Handles ---

uint64_t SimFiles::Make(FileListener& listener) {
  uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(handles_.size());
    handles_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Handle& handle = handles_[slot];
  handle.used = true;
  handle.listener = &listener;
  return uint64_t{handle.generation} << 32 | slot;
}

SimFiles::Handle* SimFiles::Find(uint64_t id) {
  const auto slot = static_cast<uint32_t>(id);
  if (slot >= handles_.size()) return nullptr;
  Handle& handle = handles_[slot];
  return handle.used && handle.generation == id >> 32 ? &handle : nullptr;
}

void SimFiles::Free(Handle& handle, uint64_t id) {
  if (handle.holds_lock) handle.inode->write_locked = false;
  const uint32_t generation = handle.generation + 1;
  handle = Handle();
  handle.generation = generation;
  free_.push_back(static_cast<uint32_t>(id));
}

void SimFiles::Close(uint64_t id) {
  Handle* handle = Find(id);
  CHECK(handle != nullptr);
  handle->listener = nullptr;
  handle->file = nullptr;
  handle->directory = nullptr;
  handle->done.clear();
  if (handle->opened && handle->operations.empty()) Free(*handle, id);
}

std::unique_ptr<Directory> SimFiles::OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                                   FileToken token) {
  const uint64_t id = Make(listener);
  auto directory = std::make_unique<SimDirectory>(this, id);
  Handle& handle = *Find(id);
  handle.directory = directory.get();
  handle.opened = true;  // its first call opens it
  Submit(id, {.call = Call::kOpenDirectory, .token = token, .create = create, .name = std::string(path)});
  return directory;
}

void SimFiles::Submit(uint64_t id, Operation operation) {
  Handle* handle = Find(id);
  CHECK(handle != nullptr);
  handle->operations.push_back(std::move(operation));
  if (handle->opened && !handle->running) Start(*handle, id);
}

void SimFiles::Start(Handle& handle, uint64_t id) {
  const Operation& operation = handle.operations.front();
  const DelayLaw* law = &knobs_.folder;
  if (operation.call == Call::kRead) law = &knobs_.read;
  if (operation.call == Call::kWrite) law = &knobs_.write;
  if (operation.call == Call::kSync || operation.call == Call::kSyncFolder) law = &knobs_.sync;
  const Duration latency = DrawDelay(*law, random_);
  if (law == &knobs_.sync && IsSlowMode(*law, latency)) context_.effects.At(endpoint_).Effective(FaultKind::kSlowSync, latency);
  int64_t at = inboxes_.TrueNow(endpoint_) + latency.nanos;
  if (at < stalled_until_) {
    context_.effects.At(endpoint_).Effective(FaultKind::kSyncStall, Nanos(stalled_until_ - context_.queue.now()));
    at = stalled_until_;
  }
  Digest fingerprint;
  fingerprint.Add(static_cast<uint64_t>(operation.call));
  fingerprint.Add(operation.offset ^ MixWord(operation.size));
  for (const Bytes& piece : operation.pieces) fingerprint.AddBytes(piece.view());
  if (!operation.name.empty()) fingerprint.AddBytes(operation.name);
  handle.running = true;
  context_.queue.Push(at, uint64_t{2} << 40 | uint64_t{endpoint_} << 32 | static_cast<uint32_t>(id),
                      {.kind = EventKind::kDisk, .target = endpoint_, .subject = id, .fingerprint = fingerprint.value()});
}

void SimFiles::OnEvent(const Event& event) {
  const uint64_t id = event.subject;
  Handle* handle = Find(id);
  if (handle == nullptr) return;
  if (context_.queue.now() < stalled_until_) {  // the stall began while the call was under way
    context_.effects.At(endpoint_).Effective(FaultKind::kSyncStall, Nanos(stalled_until_ - context_.queue.now()));
    context_.queue.Push(stalled_until_, id, event);
    return;
  }
  Operation operation = std::move(handle->operations.front());
  handle->operations.pop_front();
  handle->running = false;
  FileResult result = Execute(*handle, operation);
  if (operation.call == Call::kOpen) {
    Handle* child = Find(operation.child);
    CHECK(child != nullptr);
    Complete(*child, operation.child, operation.token, std::move(result));
    if (!child->operations.empty()) {
      Start(*child, operation.child);
    } else if (child->listener == nullptr) {
      Free(*child, operation.child);
    }
  } else {
    Complete(*handle, id, operation.token, std::move(result));
  }
  if (!handle->operations.empty()) {
    Start(*handle, id);
  } else if (handle->listener == nullptr) {
    Free(*handle, id);
  }
}

void SimFiles::Complete(Handle& handle, uint64_t id, FileToken token, FileResult result) {
  if (handle.listener == nullptr) return;
  handle.done.emplace_back(token, std::move(result));
  inboxes_.Enqueue(endpoint_, {.kind = ItemKind::kFile, .subject = id});
}

bool SimFiles::Deliver(const InboxItem& item) {
  Handle* handle = Find(item.subject);
  if (handle == nullptr || handle->listener == nullptr || handle->done.empty()) return false;
  auto [token, result] = std::move(handle->done.front());
  handle->done.pop_front();
  handle->listener->OnFileDone(token, std::move(result));
  return true;
}

bool SimFiles::EndIncarnation() {
  bool pending = false;
  const bool failed_a_call = failed_a_call_;  // what fails from here on, nobody hears
  for (Handle& handle : handles_) {
    if (!handle.used) continue;
    pending |= !handle.operations.empty() || !handle.done.empty();
    handle.listener = nullptr;
    if (handle.file != nullptr) handle.file->Detach();
    if (handle.directory != nullptr) handle.directory->Detach();
    if (!handle.opened) continue;
    for (uint64_t happens = random_.Below(handle.operations.size() + 1); happens > 0; --happens) {
      Operation operation = std::move(handle.operations.front());
      handle.operations.pop_front();
      Execute(handle, operation);
    }
  }
  for (uint32_t slot = 0; slot < handles_.size(); ++slot) {
    if (handles_[slot].used) Free(handles_[slot], slot);
  }
  failed_a_call_ = failed_a_call;
  return pending;
}

void SimFiles::Crash(Survival survival) {
  Effects effects = context_.effects.At(endpoint_);
  disk_.Crash(crash_random_, effects, survival);
}

// --- What calls do ---

bool SimFiles::Fails(uint32_t permille, FaultKind kind) {
  if (permille == 0 || !random_.Chance(permille, 1000)) return false;
  context_.effects.At(endpoint_).Effective(kind);
  failed_a_call_ = true;
  return true;
}

FileResult SimFiles::Execute(Handle& handle, Operation& operation) {
  if (handle.error != IoError::kOk) {
    if (operation.call == Call::kOpen) {
      Handle& child = *Find(operation.child);
      child.opened = true;
      child.error = handle.error;
    }
    return {.error = handle.error};
  }
  switch (operation.call) {
    case Call::kOpenDirectory:
    case Call::kOpen:
    case Call::kRename:
    case Call::kUnlink:
    case Call::kList:
    case Call::kSyncFolder:
      return ExecuteFolder(handle, operation);
    case Call::kWrite:
    case Call::kRead:
    case Call::kPreallocate:
    case Call::kTruncate:
    case Call::kSync:
      return ExecuteFile(handle, operation);
  }
  return {};
}

FileResult SimFiles::ExecuteFolder(Handle& handle, Operation& operation) {
  switch (operation.call) {
    case Call::kOpenDirectory: {
      FileResult result = ExecuteOpenDirectory(handle, operation);
      handle.error = result.error;
      return result;
    }
    case Call::kOpen: {
      Handle& child = *Find(operation.child);
      FileResult result = ExecuteOpen(handle, child, operation);
      child.opened = true;
      child.error = result.error;
      return result;
    }
    case Call::kRename:
      return {.error = ExecuteRename(*handle.inode, operation)};
    case Call::kUnlink:
      return {.error = ExecuteUnlink(*handle.inode, operation.name)};
    case Call::kList: {
      FileResult result;
      for (const auto& [name, inode] : handle.inode->entries()) result.names.push_back(name);
      return result;
    }
    case Call::kSyncFolder:
      if (Fails(knobs_.sync_error_permille, FaultKind::kSyncError)) return {.error = IoError::kDevice};
      knobs_.sync_lies ? handle.inode->EntriesSyncLied() : handle.inode->EntriesSynced();
      return {};
    default:
      CHECK_MSG(false, "not a call of a folder");
  }
  return {};
}

FileResult SimFiles::ExecuteOpenDirectory(Handle& handle, const Operation& operation) {
  std::shared_ptr<Inode> at = disk_.root();
  std::string_view path = operation.name;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (!IsPlainName(name)) return {.error = IoError::kInvalid};
    std::shared_ptr<Inode> next = at->Find(name);
    if (next == nullptr && !operation.create) return {.error = IoError::kNotFound};
    if (next == nullptr) {
      next = disk_.MakeFolder();
      at->Add(name, next);
    }
    if (!next->is_folder) return {.error = IoError::kInvalid};
    at = std::move(next);
  }
  handle.inode = std::move(at);
  return {};
}

FileResult SimFiles::ExecuteOpen(Handle& folder, Handle& child, const Operation& operation) {
  if (!IsPlainName(operation.name)) return {.error = IoError::kInvalid};
  std::shared_ptr<Inode> inode = folder.inode->Find(operation.name);
  const bool may_create = operation.mode == OpenMode::kCreate || operation.mode == OpenMode::kCreateNew;
  if (inode == nullptr && !may_create) return {.error = IoError::kNotFound};
  if (inode != nullptr && operation.mode == OpenMode::kCreateNew) return {.error = IoError::kExists};
  if (inode != nullptr && inode->is_folder) return {.error = IoError::kInvalid};
  const bool writes = operation.mode != OpenMode::kRead;
  if (writes && inode != nullptr && inode->write_locked) return {.error = IoError::kLocked};
  if (inode == nullptr) {
    inode = disk_.MakeFile();
    folder.inode->Add(operation.name, inode);
  }
  child.writable = writes;
  child.holds_lock = writes;
  if (writes) inode->write_locked = true;
  child.inode = std::move(inode);
  return {.size = child.inode->size()};
}

IoError SimFiles::ExecuteUnlink(Inode& folder, const std::string& name) {
  const std::shared_ptr<Inode> inode = folder.Find(name);
  if (inode == nullptr) return IoError::kNotFound;
  if (inode->is_folder && !inode->entries().empty()) return IoError::kExists;
  folder.Remove(name);
  return IoError::kOk;
}

IoError SimFiles::ExecuteRename(Inode& folder, const Operation& operation) {
  if (!IsPlainName(operation.to)) return IoError::kInvalid;
  const std::shared_ptr<Inode> from = folder.Find(operation.name);
  if (from == nullptr) return IoError::kNotFound;
  const std::shared_ptr<Inode> to = folder.Find(operation.to);
  if (to != nullptr && (to->is_folder || from->is_folder)) return IoError::kExists;
  folder.Rename(operation.name, operation.to);
  return IoError::kOk;
}

FileResult SimFiles::ExecuteFile(Handle& handle, Operation& operation) {
  Inode& inode = *handle.inode;
  if (operation.call != Call::kRead && operation.call != Call::kSync && !handle.writable) {
    return {.error = IoError::kPermission};
  }
  const auto space = [&](bool enough) -> FileResult {
    if (enough) return {};
    context_.effects.At(endpoint_).Effective(FaultKind::kNoSpace);
    failed_a_call_ = true;
    return {.error = IoError::kNoSpace};
  };
  switch (operation.call) {
    case Call::kWrite: {
      if (Fails(knobs_.write_error_permille, FaultKind::kDeviceError)) return {.error = IoError::kDevice};
      uint64_t offset = operation.offset;
      if (knobs_.misdirect_permille > 0 && random_.Chance(knobs_.misdirect_permille, 1000)) {
        const uint64_t elsewhere = random_.Below(inode.size() / kSectorBytes + 1) * kSectorBytes;
        if (elsewhere != offset) {
          context_.effects.At(endpoint_).Effective(FaultKind::kMisdirectedWrite);
          disk_.Harm();
          offset = elsewhere;
        }
      }
      for (const Bytes& piece : operation.pieces) {
        if (!inode.Write(offset, piece.view())) return space(false);
        offset += piece.size();
      }
      return {};
    }
    case Call::kRead:
      if (Fails(knobs_.read_error_permille, FaultKind::kDeviceError)) return {.error = IoError::kDevice};
      return {.data = inode.Read(operation.offset, operation.size)};
    case Call::kPreallocate:
      return space(inode.Preallocate(operation.size));
    case Call::kTruncate:
      if (operation.size > kFileBytesMax) return space(false);
      inode.Truncate(operation.size);
      return {};
    case Call::kSync:
      if (knobs_.sync_error_permille > 0 && random_.Chance(knobs_.sync_error_permille, 1000)) {
        Effects effects = context_.effects.At(endpoint_);
        inode.SyncFailed(random_, effects);
        failed_a_call_ = true;
        return {.error = IoError::kDevice};
      }
      knobs_.sync_lies ? inode.SyncLied() : inode.Synced();
      return {};
    default:
      CHECK_MSG(false, "not a call of a file");
  }
  return {};
}

}  // namespace detcd::sim
