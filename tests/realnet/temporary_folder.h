// Folders for tests.
#pragma once

#include <cstdint>
#include <string>

namespace detcd::realnet {

// Where files cost no disk: the system's folder in memory, or else its temporary one.
std::string FolderInMemory();

// A folder below `parent`, removed at the end; below the system's temporary folder when nothing is said.
class TemporaryFolder {
 public:
  TemporaryFolder();
  explicit TemporaryFolder(const std::string& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Puts a file system of `bytes` over it; false when that is not permitted.
  bool Limit(uint64_t bytes);

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace detcd::realnet
