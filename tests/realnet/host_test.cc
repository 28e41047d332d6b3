#include "realnet/real_host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "tests/realnet/real_world.h"

namespace detcd::realnet {
namespace {

struct Files final : FileListener {
  void OnFileDone(FileToken token, FileResult result) override { done[token] = std::move(result); }
  std::map<FileToken, FileResult> done;
};

const FileResult& Wait(RealHost& host, Files& files, FileToken token) {
  const Instant give_up = Loop::Now() + Seconds(10);
  while (!files.done.contains(token) && Loop::Now() < give_up) RunOneTurn({&host});
  EXPECT_TRUE(files.done.contains(token));
  return files.done[token];
}

HostOptions Quiet(const TemporaryFolder& folder) {
  return {.data_folder = folder.path() + "/data", .log_level = LogLevel::kPanic};
}

TEST(HostTest, GivenSeedGivesTheSameDraws) {
  TemporaryFolder folder;
  HostOptions options = Quiet(folder);
  options.seed = 7;
  RealHost first(options);
  RealHost second(options);
  RealHost unseeded(Quiet(folder));
  EXPECT_EQ(first.Random("raft").Next(), second.Random("raft").Next());
  EXPECT_NE(first.Random("raft").Next(), unseeded.Random("raft").Next());
}

TEST(HostTest, RunReturnsTheFirstReasonToStop) {
  struct Stopper final : PostListener {
    explicit Stopper(Host& h) : host(h) {}
    void OnPost(uint64_t) override {
      host.Stop(false, "sync failed");
      host.Stop(true, "later");
    }
    Host& host;
  };
  TemporaryFolder folder;
  RealHost host(Quiet(folder));
  Stopper stopper(host);
  host.events().Post(stopper, 0);
  const StopReason reason = host.Run();
  EXPECT_FALSE(reason.ok);
  EXPECT_EQ(reason.text, "sync failed");
  host.End();
  host.End();  // twice is once
}

TEST(HostTest, PathsThatLeaveTheDataFolderAreInvalid) {
  TemporaryFolder folder;
  RealHost host(Quiet(folder));
  Files files;
  FileToken token = 0;
  for (const std::string& path : {std::string(".."), std::string("/"), std::string("/etc"), std::string("a/../.."),
                                  std::string("a//b"), std::string("a/"), std::string("./a"), std::string("a\0b", 3)}) {
    auto directory = host.files().OpenDirectory(path, true, files, ++token);
    EXPECT_EQ(Wait(host, files, token).error, IoError::kInvalid) << path;
    auto file = directory->Open("a", OpenMode::kCreate, files, ++token);
    EXPECT_EQ(Wait(host, files, token).error, IoError::kInvalid) << path;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/data"));
  auto directory = host.files().OpenDirectory("", true, files, ++token);
  EXPECT_EQ(Wait(host, files, token).error, IoError::kOk);
  for (std::string_view name : {"..", ".", "", "a/b", "../x"}) {
    auto file = directory->Open(name, OpenMode::kCreate, files, ++token);
    EXPECT_EQ(Wait(host, files, token).error, IoError::kInvalid) << name;
    directory->Rename("a", name, ++token);
    EXPECT_EQ(Wait(host, files, token).error, IoError::kInvalid) << name;
    directory->Unlink(name, ++token);
    EXPECT_EQ(Wait(host, files, token).error, IoError::kInvalid) << name;
  }
}

TEST(HostTest, LogFolderMayBeElsewhere) {
  TemporaryFolder folder;
  HostOptions options = Quiet(folder);
  options.log_folders = {{.path = "member/wal", .elsewhere = folder.path() + "/fast/wal"}};
  RealHost host(options);
  Files files;
  auto directory = host.files().OpenDirectory("member/wal", true, files, 1);
  auto file = directory->Open("0.wal", OpenMode::kCreateNew, files, 2);
  EXPECT_EQ(Wait(host, files, 2).error, IoError::kOk);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/fast/wal/0.wal"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/data/member/wal"));
}

TEST(HostTest, BulkWorkDoesNotHoldUpTheLog) {
  TemporaryFolder folder;
  RealHost host(Quiet(folder));
  Files files;
  auto log_folder = host.files().OpenDirectory("member/wal", true, files, 1);
  auto log = log_folder->Open("0.wal", OpenMode::kCreateNew, files, 2);
  auto bulk_folder = host.files().OpenDirectory("member/snap", true, files, 3);
  auto bulk = bulk_folder->Open("db", OpenMode::kCreateNew, files, 4);
  Wait(host, files, 2);
  Wait(host, files, 4);
  const Bytes large = Bytes::Copy(std::string(16 << 20, 'x'));
  for (FileToken token = 100; token < 108; ++token) bulk->WriteAt((token - 100) << 24, {&large, 1}, token);
  bulk->Sync(108);
  const Bytes small = Bytes::Copy("record");
  log->WriteAt(0, {&small, 1}, 5);
  EXPECT_EQ(Wait(host, files, 5).error, IoError::kOk);
  EXPECT_FALSE(files.done.contains(108)) << "the log waited for 128 MB of bulk work";
  EXPECT_EQ(Wait(host, files, 108).error, IoError::kOk);
}

TEST(HostTest, SecondProcessOverTheSameFilesIsLockedOut) {
  TemporaryFolder folder;
  RealHost first(Quiet(folder));
  RealHost second(Quiet(folder));
  Files files;
  auto mine = first.files().OpenDirectory("member/wal", true, files, 1);
  auto held = mine->Open("0.wal", OpenMode::kCreate, files, 2);
  EXPECT_EQ(Wait(first, files, 2).error, IoError::kOk);
  auto theirs = second.files().OpenDirectory("member/wal", false, files, 3);
  auto wanted = theirs->Open("0.wal", OpenMode::kWrite, files, 4);
  EXPECT_EQ(Wait(second, files, 4).error, IoError::kLocked);
  first.End();
  auto now = theirs->Open("0.wal", OpenMode::kWrite, files, 5);
  EXPECT_EQ(Wait(second, files, 5).error, IoError::kOk);
}

}  // namespace
}  // namespace detcd::realnet
