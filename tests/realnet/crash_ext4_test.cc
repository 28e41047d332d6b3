// Power loss on a real ext4: the log runs on a loop device, whose file is copied after each of its calls and
// acknowledgements. Each copy is mounted (ext4 replays its journal) and the real log opens what is there.
//
// What a copy cannot lack is what a device keeps in a cache of its own: the order of flushes is not tested here.
//
// Longer: DETCD_CRASH_ROUNDS (workloads, one by default), DETCD_CRASH_SEED (of the first).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/realnet/crash_run.h"
#include "tests/realnet/loop_image.h"

namespace detcd::realnet {
namespace {

using Rng = std::mt19937_64;

constexpr uint64_t kImageBytes = 64 << 20;
constexpr int kBatches = 25;

// What a power loss at one moment leaves.
struct CrashImage {
  std::string path;
  uint64_t writes = 0;  // of the device before it
  Promise promise;
  std::string where;
};

// Collects the images of one disk while a log runs on it.
class ImageCollector {
 public:
  ImageCollector(const MountedImage& disk, const Ledger& ledger, std::string folder, uint64_t seed)
      : disk_(disk), ledger_(ledger), folder_(std::move(folder)), rng_(seed) {}

  // The kernel may write back at any time: what it does is drawn here, for a stretch of calls, since one that writes
  // back often hides what the log forgot to sync.
  void OnCall(const DiskCall& call, int descriptor) {
    if (writeback_ == Writeback::kAll && rng_() % 3 == 0) ::syncfs(descriptor);
    if (writeback_ == Writeback::kData && call.kind == DiskCall::Kind::kWrite) {
      constexpr unsigned kWhole = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
      ::sync_file_range(descriptor, 0, 0, kWhole);
    }
    Take(Describe(call));
  }
  // An image of the same content must hold what was acknowledged meanwhile.
  void Take(const std::string& where) {
    const Promise& promise = ledger_.latest();
    if (!images_.empty() && images_.back().writes == disk_.writes()) {
      images_.back().promise = promise;
      images_.back().where = where;
      return;
    }
    std::string path = folder_ + "/" + std::to_string(taken_++);
    const uint64_t writes = disk_.CopyTo(path);
    images_.push_back({.path = std::move(path), .writes = writes, .promise = promise, .where = where});
  }
  // Those since the last time; another stretch begins.
  std::vector<CrashImage> TakeAll() {
    std::vector<CrashImage> images;
    DiskTrace::WhileStill([&] {
      images.swap(images_);
      const uint64_t draw = rng_() % 4;
      writeback_ = draw == 0 ? Writeback::kAll : draw == 1 ? Writeback::kData : Writeback::kNone;
    });
    return images;
  }

 private:
  enum class Writeback { kNone, kData, kAll };

  const MountedImage& disk_;
  const Ledger& ledger_;
  const std::string folder_;
  // The following: only while no call on a traced folder is under way.
  Rng rng_;
  Writeback writeback_ = Writeback::kNone;
  std::vector<CrashImage> images_;
  size_t taken_ = 0;
};

// The log recovers from `image`, and from each image of that recovery (`crashes` deep). Returns the number of images.
size_t ExpectRecovers(const CrashImage& image, const std::vector<wal::LogModel>& states, int crashes, Rng& rng,
                      const std::string& where) {
  TemporaryFolder folder(FolderInMemory());
  std::vector<CrashImage> again;
  std::vector<wal::LogModel> states_again;
  {
    const MountedImage disk(image.path);
    std::unique_ptr<ImageCollector> collector;
    DiskTrace trace(disk.path(), [&](const DiskCall& call, int descriptor) {
      if (collector) collector->OnCall(call, descriptor);
    });
    Ledger ledger(trace);
    if (crashes > 0) {
      collector = std::make_unique<ImageCollector>(disk, ledger, folder.path(), rng());
      ledger.on_promise = [&] { collector->Take("acknowledgement"); };
    }
    RunRecovery(disk.path(), states, image.promise, ledger, where);
    trace.End();
    if (collector) again = collector->TakeAll();
    states_again = std::move(ledger.states);
  }
  size_t count = 1;
  for (const CrashImage& next : again) {
    if (::testing::Test::HasFatalFailure()) return count;
    count += ExpectRecovers(next, states_again, crashes - 1, rng, where + ", then in recovery after: " + next.where);
  }
  return count;
}

TEST(CrashExt4Test, NothingAcknowledgedIsLostAfterAnyCall) {
  if (const auto reason = WhyNoLoopImages()) GTEST_SKIP() << "no ext4 on a loop device here (" << *reason << ")";
  const uint64_t first = NumberFromEnvironment("DETCD_CRASH_SEED", 1);
  const uint64_t rounds = NumberFromEnvironment("DETCD_CRASH_ROUNDS", 1);
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    Rng rng(seed);
    TemporaryFolder folder(FolderInMemory());
    const std::string image = folder.path() + "/disk";
    MakeExt4(image, kImageBytes);
    const MountedImage disk(image);
    std::unique_ptr<ImageCollector> collector;
    DiskTrace trace(disk.path(), [&](const DiskCall& call, int descriptor) { collector->OnCall(call, descriptor); });
    Ledger ledger(trace);
    collector = std::make_unique<ImageCollector>(disk, ledger, folder.path(), rng());
    ledger.on_promise = [&] { collector->Take("acknowledgement"); };
    size_t images = 0;
    RunWorkload(disk.path(), seed, kBatches, ledger, [&] {
      for (const CrashImage& crash : collector->TakeAll()) {
        if (HasFatalFailure()) return;
        const std::string where = "seed " + std::to_string(seed) + ", image " + crash.path + " after: " + crash.where;
        // Losing power again in a recovery is tried in one of eight.
        images += ExpectRecovers(crash, ledger.states, rng() % 8 == 0 ? 1 : 0, rng, where);
        ::unlink(crash.path.c_str());
      }
    });
    if (HasFatalFailure()) return;
    EXPECT_GT(images, 30u);
  }
}

}  // namespace
}  // namespace detcd::realnet
