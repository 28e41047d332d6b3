#include "tests/realnet/loop_image.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace detcd::realnet {
namespace {

constexpr const char* kControl = "/dev/loop-control";
constexpr uint64_t kSmallestImageBytes = uint64_t{16} << 20;

std::runtime_error Error(const std::string& what) { return std::runtime_error(what + ": " + std::strerror(errno)); }

// A descriptor, closed at the end.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (value_ < 0) throw Error("open of " + path);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return value_; }

 private:
  const int value_;
};

// Holes stay holes.
void CopySparse(const std::string& from, const std::string& to) {
  const Descriptor source(from, O_RDONLY);
  const Descriptor target(to, O_WRONLY | O_CREAT | O_TRUNC);
  const off_t size = ::lseek(source, 0, SEEK_END);
  if (size < 0 || ::ftruncate(target, size) != 0) throw Error("copy to " + to);
  std::vector<char> buffer(1 << 20);
  for (off_t at = ::lseek(source, 0, SEEK_DATA); at >= 0 && at < size; at = ::lseek(source, at, SEEK_DATA)) {
    const off_t limit = ::lseek(source, at, SEEK_HOLE);
    while (at < limit) {
      const size_t wanted = std::min(buffer.size(), static_cast<size_t>(limit - at));
      const ssize_t got = ::pread(source, buffer.data(), wanted, at);
      if (got <= 0 || ::pwrite(target, buffer.data(), static_cast<size_t>(got), at) != got)
        throw Error("copy to " + to);
      at += got;
    }
  }
}

}  // namespace

std::optional<std::string> WhyNoLoopImages() {
  if (::geteuid() != 0) return "not root";
  if (::access(kControl, R_OK | W_OK) != 0)
    return std::string("no loop devices: ") + kControl + ": " + std::strerror(errno);
  if (std::system("mkfs.ext4 -V >/dev/null 2>&1") != 0) return "no mkfs.ext4";
  if (::unshare(CLONE_NEWNS) != 0) {
    return std::string("no mount namespace: ") + std::strerror(errno);
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return std::string("no private mounts: ") + std::strerror(errno);
  }
  // Being root in a container may not be enough for a device, nor this kernel know ext4: only trying tells.
  const TemporaryFolder folder;
  const std::string image = folder.path() + "/disk";
  try {
    MakeExt4(image, kSmallestImageBytes);
    const MountedImage disk(image);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return std::nullopt;
}

void MakeExt4(const std::string& path, uint64_t bytes) {
  {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL);
  }
  std::filesystem::resize_file(path, bytes);
  const std::string command =
      "mkfs.ext4 -q -F -b 4096 -N 128 -m 0 -J size=4 "
      "-E lazy_itable_init=0,lazy_journal_init=1,nodiscard '" +
      path + "' >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
}

MountedImage::MountedImage(std::string image) : image_(std::move(image)), folder_() {
  Attach();
  const std::string device = "/dev/loop" + std::to_string(number_);
  mounted_ = ::mount(device.c_str(), path().c_str(), "ext4", MS_NOATIME | MS_NOSUID | MS_NODEV, "") == 0;
  if (!mounted_) {
    const std::runtime_error error = Error("mount of " + device);
    Detach();
    throw error;
  }
}

MountedImage::~MountedImage() {
  if (mounted_ && ::umount2(path().c_str(), 0) != 0) ::umount2(path().c_str(), MNT_DETACH);
  Detach();
}

void MountedImage::Attach() {
  const Descriptor file(image_, O_RDWR);
  const Descriptor control(kControl, O_RDWR);
  loop_config config = {};
  config.fd = static_cast<uint32_t>(static_cast<int>(file));
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) break;
    number_ = static_cast<uint64_t>(number);
    device_ = ::open(("/dev/loop" + std::to_string(number_)).c_str(), O_RDWR | O_CLOEXEC);
    if (device_ < 0) break;
    if (::ioctl(device_, LOOP_CONFIGURE, &config) == 0) {
      // A kernel may refuse to mount what somebody holds open for writing.
      const int reader = ::open(("/dev/loop" + std::to_string(number_)).c_str(), O_RDONLY | O_CLOEXEC);
      Detach();
      device_ = reader;
      if (reader < 0) break;
      return;
    }
    const int error = errno;
    Detach();
    errno = error;
    if (error != EBUSY) break;  // taken by somebody else meanwhile
  }
  throw Error("no loop device for " + image_);
}

void MountedImage::Detach() {
  if (device_ >= 0) ::close(device_);  // and so it lets go of the image
  device_ = -1;
}

// Documentation/admin-guide/iostats: reads (4 numbers), writes (4: finished first), then those under way.
MountedImage::Counts MountedImage::ReadCounts() const {
  std::ifstream file("/sys/block/loop" + std::to_string(number_) + "/stat");
  uint64_t values[9] = {};
  for (uint64_t& value : values) file >> value;
  if (!file) throw std::runtime_error("no statistics of loop device " + std::to_string(number_));
  return {.writes = values[4], .in_flight = values[8]};
}

uint64_t MountedImage::writes() const { return ReadCounts().writes; }

uint64_t MountedImage::CopyTo(const std::string& path) const {
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    const Counts before = ReadCounts();
    if (before.in_flight == 0) {
      CopySparse(image_, path);
      const Counts after = ReadCounts();
      if (after.in_flight == 0 && after.writes == before.writes) return after.writes;
    }
    ::usleep(200);
  }
  throw std::runtime_error("the device of " + image_ + " never rests");
}

}  // namespace detcd::realnet
