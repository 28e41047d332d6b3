// A real ext4 on a loop device over a file, which is the disk: what is in that file has reached the device, what is
// only in the page cache above the mounted file system has not, so that a copy of the file is what a power loss leaves.
//
// Needs root, a loop driver and mkfs.ext4. Nothing outlives the process however it ends: mounts are in a namespace of
// its own, and a loop device lets go of its file with the last user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/realnet/temporary_folder.h"

namespace detcd::realnet {

// Goes into a mount namespace of this process's own (threads begun later are in it too). The reason when this machine
// does not permit mounts, loop devices or file systems at all.
std::optional<std::string> WhyNoLoopImages();

// Makes an ext4 of `bytes` in the new file `path`, without background work of the kernel.
void MakeExt4(const std::string& path, uint64_t bytes);

class MountedImage {
 public:
  // Replays the journal when the image was not unmounted. Throws std::runtime_error.
  explicit MountedImage(std::string image);
  ~MountedImage();
  MountedImage(const MountedImage&) = delete;
  MountedImage& operator=(const MountedImage&) = delete;

  // Where it is mounted.
  const std::string& path() const { return folder_.path(); }
  // Writes that the device finished. The image has the same content as long as this number is the same.
  uint64_t writes() const;
  // Writes the image as it is at one moment to the new file `path`: no write of the device overlaps it. Returns
  // writes().
  uint64_t CopyTo(const std::string& path) const;

 private:
  struct Counts {
    uint64_t writes = 0;
    uint64_t in_flight = 0;
  };
  Counts ReadCounts() const;
  void Attach();
  void Detach();

  const std::string image_;
  const TemporaryFolder folder_;
  int device_ = -1;
  uint64_t number_ = 0;  // of the device
  bool mounted_ = false;
};

}  // namespace detcd::realnet
