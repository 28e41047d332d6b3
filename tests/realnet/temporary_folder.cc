#include "tests/realnet/temporary_folder.h"

#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace detcd::realnet {

std::string FolderInMemory() {
  constexpr const char* kShared = "/dev/shm";
  return ::access(kShared, W_OK | X_OK) == 0 ? kShared : std::filesystem::temp_directory_path().string();
}

TemporaryFolder::TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path().string()) {}

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  std::string name = parent + "/realnet_test.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool TemporaryFolder::Limit(uint64_t bytes) {
  const std::string options = "mode=0700,size=" + std::to_string(bytes);
  mounted_ = ::mount("none", path_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  return mounted_;
}

}  // namespace detcd::realnet
