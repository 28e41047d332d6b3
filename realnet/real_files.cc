#include "realnet/real_files.h"

#include <unistd.h>

#include <utility>

#include "realnet/file_calls.h"

namespace detcd::realnet {

// One open file or folder, shared by its handle and the calls under way.
struct FileNode {
  FileNode(Worker& w, FileListener& l) : worker(w), listener(&l) {}
  ~FileNode() { Close(); }
  FileNode(const FileNode&) = delete;
  FileNode& operator=(const FileNode&) = delete;

  void Close() {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }

  Worker& worker;
  FileListener* listener;        // the loop's thread: null once the handle is gone
  int descriptor = -1;           // the worker's thread, as the next; End's once the worker stopped
  IoError error = IoError::kOk;  // why the opening failed: the fate of every call
};

namespace {

// One call: `work(node, result)` on the worker's thread, then the listener's event.
template <class Work>
class FileJob final : public Job {
 public:
  FileJob(Loop& loop, std::shared_ptr<FileNode> node, FileToken token, Work work)
      : loop_(loop), node_(std::move(node)), token_(token), work_(std::move(work)) {}

  void Run() override {
    if (node_->error == IoError::kOk) {
      work_(*node_, result_);
    } else {
      result_.error = node_->error;
    }
  }
  void Complete() override {
    if (node_->listener == nullptr) return;
    loop_.BeginEvent();
    node_->listener->OnFileDone(token_, std::move(result_));
  }

 private:
  Loop& loop_;
  const std::shared_ptr<FileNode> node_;
  const FileToken token_;
  Work work_;
  FileResult result_;
};

template <class Work>
void Submit(Loop& loop, const std::shared_ptr<FileNode>& node, FileToken token, Work work) {
  node->worker.Submit(std::make_unique<FileJob<Work>>(loop, node, token, std::move(work)));
}

// Closes behind all earlier calls.
class CloseJob final : public Job {
 public:
  CloseJob(RealFileSystem& files, std::shared_ptr<FileNode> node) : files_(files), node_(std::move(node)) {}
  void Run() override { node_->Close(); }
  void Complete() override { files_.Remove(node_); }

 private:
  RealFileSystem& files_;
  const std::shared_ptr<FileNode> node_;
};

class RealFile final : public File {
 public:
  RealFile(RealFileSystem& files, std::shared_ptr<FileNode> node) : files_(files), node_(std::move(node)) {}
  ~RealFile() override { files_.Release(node_); }

  void WriteAt(uint64_t offset, std::span<const Bytes> pieces, FileToken token) override {
    Call(token, [offset, kept = std::vector<Bytes>(pieces.begin(), pieces.end())](FileNode& node, FileResult& result) {
      result.error = WriteAll(node.descriptor, offset, kept);
    });
  }
  void ReadAt(uint64_t offset, uint64_t size, FileToken token) override {
    Call(token, [offset, size](FileNode& node, FileResult& result) {
      result.error = ReadUpTo(node.descriptor, offset, size, result.data);
    });
  }
  void Preallocate(uint64_t size, FileToken token) override {
    Call(token, [size](FileNode& node, FileResult& result) { result.error = AllocateTo(node.descriptor, size); });
  }
  void Truncate(uint64_t size, FileToken token) override {
    Call(token, [size](FileNode& node, FileResult& result) { result.error = TruncateTo(node.descriptor, size); });
  }
  void Sync(FileToken token) override {
    Call(token, [](FileNode& node, FileResult& result) { result.error = SyncFile(node.descriptor); });
  }

 private:
  template <class Work>
  void Call(FileToken token, Work work) {
    Submit(files_.loop(), node_, token, std::move(work));
  }

  RealFileSystem& files_;
  const std::shared_ptr<FileNode> node_;
};

class RealDirectory final : public Directory {
 public:
  RealDirectory(RealFileSystem& files, std::shared_ptr<FileNode> node) : files_(files), node_(std::move(node)) {}
  ~RealDirectory() override { files_.Release(node_); }

  std::unique_ptr<File> Open(std::string_view name, OpenMode mode, FileListener& listener, FileToken token) override {
    std::shared_ptr<FileNode> node = files_.NewNode(node_->worker, listener);
    Submit(files_.loop(), node, token,
           [folder = node_, name = std::string(name), mode](FileNode& file, FileResult& result) {
             OpenedFile opened;
             opened.error = folder->error;
             if (opened.error == IoError::kOk && !IsPlainName(name)) opened.error = IoError::kInvalid;
             if (opened.error == IoError::kOk) opened = OpenFile(folder->descriptor, name, mode);
             file.error = result.error = opened.error;
             file.descriptor = opened.descriptor;
             result.size = opened.size;
           });
    return std::make_unique<RealFile>(files_, std::move(node));
  }

  void Rename(std::string_view from, std::string_view to, FileToken token) override {
    Submit(files_.loop(), node_, token,
           [from = std::string(from), to = std::string(to)](FileNode& node, FileResult& result) {
             const bool plain = IsPlainName(from) && IsPlainName(to);
             result.error = plain ? RenameEntry(node.descriptor, from, to) : IoError::kInvalid;
           });
  }
  void Unlink(std::string_view name, FileToken token) override {
    Submit(files_.loop(), node_, token, [name = std::string(name)](FileNode& node, FileResult& result) {
      result.error = IsPlainName(name) ? RemoveEntry(node.descriptor, name) : IoError::kInvalid;
    });
  }
  void List(FileToken token) override {
    Submit(files_.loop(), node_, token, [](FileNode& node, FileResult& result) {
      result.error = ListEntries(node.descriptor, result.names);
    });
  }
  void Sync(FileToken token) override {
    Submit(files_.loop(), node_, token,
           [](FileNode& node, FileResult& result) { result.error = SyncFolder(node.descriptor); });
  }

 private:
  RealFileSystem& files_;
  const std::shared_ptr<FileNode> node_;
};

// "" and "a/b" stay below the data folder; anything with an empty, `.` or `..` part might not.
bool IsPlainPath(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (!IsPlainName(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
    if (path.empty()) return false;
  }
  return true;
}

}  // namespace

RealFileSystem::RealFileSystem(Loop& loop, std::string root, std::vector<LogFolder> log_folders)
    : loop_(loop),
      root_(std::move(root)),
      log_folders_(std::move(log_folders)),
      log_worker_("log files", loop.completions()),
      bulk_worker_("bulk files", loop.completions()) {}

RealFileSystem::~RealFileSystem() { End(); }

void RealFileSystem::End() {
  log_worker_.Stop();
  bulk_worker_.Stop();
  for (const std::shared_ptr<FileNode>& node : nodes_) {
    node->listener = nullptr;
    node->Close();
  }
  nodes_.clear();
}

std::shared_ptr<FileNode> RealFileSystem::NewNode(Worker& worker, FileListener& listener) {
  auto node = std::make_shared<FileNode>(worker, listener);
  nodes_.insert(node);
  return node;
}

void RealFileSystem::Release(const std::shared_ptr<FileNode>& node) {
  node->listener = nullptr;
  node->worker.Submit(std::make_unique<CloseJob>(*this, node));
}

std::unique_ptr<Directory> RealFileSystem::OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                                         FileToken token) {
  Worker* worker = &bulk_worker_;
  std::string os_path = path.empty() ? root_ : root_ + "/" + std::string(path);
  for (const LogFolder& folder : log_folders_) {
    if (folder.path != path) continue;
    worker = &log_worker_;
    if (!folder.elsewhere.empty()) os_path = folder.elsewhere;
  }
  std::shared_ptr<FileNode> node = NewNode(*worker, listener);
  Submit(loop_, node, token,
         [os_path = std::move(os_path), plain = IsPlainPath(path), create](FileNode& folder, FileResult& result) {
           const OpenedFile opened = plain ? OpenFolder(os_path, create) : OpenedFile{.error = IoError::kInvalid};
           folder.error = result.error = opened.error;
           folder.descriptor = opened.descriptor;
         });
  return std::make_unique<RealDirectory>(*this, std::move(node));
}

}  // namespace detcd::realnet
