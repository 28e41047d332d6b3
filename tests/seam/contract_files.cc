// Files and folders, and what power loss leaves of them.
#include <algorithm>
#include <cstdio>

#include "tests/seam/contract.h"

namespace detcd {
namespace {

// A folder with its recorder; each call gets a token of its own, and most are waited for.
class Folder {
 public:
  Folder(Host& host, std::string_view path) { directory = host.files().OpenDirectory(path, true, recorder, ++last); }

  std::unique_ptr<File> Open(std::string_view name, OpenMode mode) {
    return directory->Open(name, mode, recorder, ++last);
  }
  FileToken Write(File& file, uint64_t offset, std::string_view text) {
    const Bytes bytes = Bytes::Copy(text);
    file.WriteAt(offset, {&bytes, 1}, ++last);
    return last;
  }
  FileToken Read(File& file, uint64_t offset, uint64_t size) { return file.ReadAt(offset, size, ++last), last; }
  FileToken Sync(File& file) { return file.Sync(++last), last; }
  FileToken Sync() { return directory->Sync(++last), last; }
  FileToken List() { return directory->List(++last), last; }
  FileToken Rename(std::string_view from, std::string_view to) { return directory->Rename(from, to, ++last), last; }
  FileToken Unlink(std::string_view name) { return directory->Unlink(name, ++last), last; }

  FileRecorder recorder;
  FileToken last = 0;
  std::unique_ptr<Directory> directory;
};

TEST_P(SeamContract, WrittenBytesAreReadBack) {
  Folder folder(Boot(), "files");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  const Bytes pieces[] = {Bytes::Copy("one"), Bytes(), Bytes::Copy("two")};
  file->WriteAt(4, pieces, 100);
  file->ReadAt(0, 100, 101);
  file->ReadAt(5, 3, 102);
  file->ReadAt(10, 5, 103);  // at the end
  file->ReadAt(1'000, 5, 104);
  file->ReadAt(2, 0, 105);
  EXPECT_TRUE(folder.recorder.order.empty()) << "a completion inside a call";
  EXPECT_EQ(Wait(folder.recorder, 101).data.view(), std::string_view("\0\0\0\0onetwo", 10));
  EXPECT_EQ(Wait(folder.recorder, 102).data.view(), "net");
  for (FileToken token : {103u, 104u, 105u}) {
    const FileResult result = Wait(folder.recorder, token);
    EXPECT_EQ(result.error, IoError::kOk);
    EXPECT_TRUE(result.data.empty());
  }
}

TEST_P(SeamContract, CallsOnOneFileCompleteInOrder) {
  Folder folder(Boot(), "files");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  const FileToken opened = folder.last;
  for (int i = 0; i < 20; ++i) {
    folder.Write(*file, static_cast<uint64_t>(i) * 3, Pattern(700));
    if (i % 4 == 0) folder.Sync(*file);
    folder.Read(*file, 0, 5);
  }
  Wait(folder.recorder, folder.last);
  std::vector<FileToken> calls;
  for (FileToken token : folder.recorder.order) {
    if (token >= opened) calls.push_back(token);
  }
  EXPECT_EQ(calls.size(), folder.last - opened + 1);
  EXPECT_TRUE(std::is_sorted(calls.begin(), calls.end()));
}

TEST_P(SeamContract, LargeWritesAtOddOffsetsKeepTheirBytes) {
  Folder folder(Boot(), "files");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  const std::string text = Pattern(300'001);
  folder.Write(*file, 511, text);
  folder.Write(*file, 70'000, "middle");
  std::string expected = std::string(511, '\0') + text;
  expected.replace(70'000, 6, "middle");
  const FileResult result = Wait(folder.recorder, folder.Read(*file, 0, 400'000));
  EXPECT_TRUE(result.data.view() == expected);
}

TEST_P(SeamContract, OpenModes) {
  Folder folder(Boot(), "files");
  for (OpenMode mode : {OpenMode::kRead, OpenMode::kWrite}) {
    auto absent = folder.Open("absent", mode);
    EXPECT_EQ(Wait(folder.recorder, folder.last).error, IoError::kNotFound);
    EXPECT_EQ(Wait(folder.recorder, folder.Read(*absent, 0, 1)).error, IoError::kNotFound);
    EXPECT_EQ(Wait(folder.recorder, folder.Sync(*absent)).error, IoError::kNotFound);
  }
  {
    auto made = folder.Open("a", OpenMode::kCreateNew);
    EXPECT_EQ(Wait(folder.recorder, folder.last).size, 0u);
    Wait(folder.recorder, folder.Write(*made, 0, "12345"));
  }
  auto again = folder.Open("a", OpenMode::kCreateNew);
  EXPECT_EQ(Wait(folder.recorder, folder.last).error, IoError::kExists);
  for (OpenMode mode : {OpenMode::kRead, OpenMode::kWrite, OpenMode::kCreate}) {
    auto file = folder.Open("a", mode);
    const FileResult opened = Wait(folder.recorder, folder.last);
    EXPECT_EQ(opened.error, IoError::kOk);
    EXPECT_EQ(opened.size, 5u);
    EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 9)).data.view(), "12345");
  }
  auto created = folder.Open("b", OpenMode::kCreate);
  EXPECT_EQ(Wait(folder.recorder, folder.last).error, IoError::kOk);
}

TEST_P(SeamContract, OneWriterHoldsTheLock) {
  Folder folder(Boot(), "files");
  auto holder = folder.Open("a", OpenMode::kCreate);
  Wait(folder.recorder, folder.last);
  {
    auto second = folder.Open("a", OpenMode::kWrite);
    EXPECT_EQ(Wait(folder.recorder, folder.last).error, IoError::kLocked);
    auto reader = folder.Open("a", OpenMode::kRead);
    EXPECT_EQ(Wait(folder.recorder, folder.last).error, IoError::kOk);
  }
  Wait(folder.recorder, folder.Write(*holder, 0, "still mine"));
  holder.reset();
  auto next = folder.Open("a", OpenMode::kWrite);
  EXPECT_EQ(Wait(folder.recorder, folder.last).error, IoError::kOk);
}

TEST_P(SeamContract, PreallocateGrowsAndTruncateSetsTheSize) {
  Folder folder(Boot(), "files");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  folder.Write(*file, 0, "abc");
  file->Preallocate(6, 100);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 100)).data.view(), std::string_view("abc\0\0\0", 6));
  file->Preallocate(2, 101);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 100)).data.size(), 6u);
  file->Truncate(1, 102);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 100)).data.view(), "a");
  file->Truncate(3, 103);  // what was cut off does not come back
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 100)).data.view(), std::string_view("a\0\0", 3));
  for (FileToken token : {100u, 101u, 102u, 103u}) EXPECT_EQ(Wait(folder.recorder, token).error, IoError::kOk);
}

TEST_P(SeamContract, NamesAreListedRenamedAndRemoved) {
  Host& host = Boot();
  Folder folder(host, "files");
  for (std::string_view name : {"b", "a", "c", "B"}) {
    auto file = folder.Open(name, OpenMode::kCreateNew);
    folder.Write(*file, 0, name);
    Wait(folder.recorder, folder.last);
  }
  auto renamed = folder.Open("c", OpenMode::kRead);
  EXPECT_EQ(Wait(folder.recorder, folder.Rename("c", "a")).error, IoError::kOk);
  EXPECT_EQ(Wait(folder.recorder, folder.Unlink("B")).error, IoError::kOk);
  EXPECT_EQ(Wait(folder.recorder, folder.Rename("absent", "x")).error, IoError::kNotFound);
  EXPECT_EQ(Wait(folder.recorder, folder.Unlink("absent")).error, IoError::kNotFound);
  EXPECT_EQ(Wait(folder.recorder, folder.List()).names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*renamed, 0, 9)).data.view(), "c") << "the handle follows the file";
  auto replaced = folder.Open("a", OpenMode::kRead);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*replaced, 0, 9)).data.view(), "c");
}

TEST_P(SeamContract, FoldersAreMadeWithTheirParents) {
  Host& host = Boot();
  FileRecorder recorder;
  auto absent = host.files().OpenDirectory("no/such", false, recorder, 1);
  absent->List(2);
  EXPECT_EQ(Wait(recorder, 1).error, IoError::kNotFound);
  EXPECT_EQ(Wait(recorder, 2).error, IoError::kNotFound);
  auto made = host.files().OpenDirectory("outer/inner", true, recorder, 3);
  EXPECT_EQ(Wait(recorder, 3).error, IoError::kOk);
  auto outer = host.files().OpenDirectory("outer", false, recorder, 4);
  outer->List(5);
  EXPECT_EQ(Wait(recorder, 5).names, std::vector<std::string>{"inner"});
  made.reset();
  outer->Unlink("inner", 6);  // empty folders only
  EXPECT_EQ(Wait(recorder, 6).error, IoError::kOk);
  outer->List(7);
  EXPECT_TRUE(Wait(recorder, 7).names.empty());
}

TEST_P(SeamContract, UnlinkedFileStaysReadableThroughItsHandle) {
  Folder folder(Boot(), "files");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  folder.Write(*file, 0, "text");
  Wait(folder.recorder, folder.last);
  EXPECT_EQ(Wait(folder.recorder, folder.Unlink("a")).error, IoError::kOk);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 9)).data.view(), "text");
  auto fresh = folder.Open("a", OpenMode::kCreateNew);
  EXPECT_EQ(Wait(folder.recorder, folder.last).size, 0u);
}

TEST_P(SeamContract, DestroyedFileStillWritesButIsSilent) {
  Folder folder(Boot(), "files");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  Wait(folder.recorder, folder.last);
  const FileToken written = folder.Write(*file, 0, "left behind");
  file.reset();
  Pass();
  EXPECT_FALSE(folder.recorder.Has(written));
  auto again = folder.Open("a", OpenMode::kWrite);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*again, 0, 100)).data.view(), "left behind");
}

TEST_P(SeamContract, SyncedFileAndNameSurviveACrash) {
  {
    Host& host = Boot();
    Folder root(host, "");
    Folder folder(host, "member");
    auto file = folder.Open("log", OpenMode::kCreateNew);
    folder.Write(*file, 0, Pattern(5'000));
    file->Preallocate(9'000, 100);
    EXPECT_EQ(Wait(folder.recorder, folder.Sync(*file)).error, IoError::kOk);
    EXPECT_EQ(Wait(folder.recorder, folder.Sync()).error, IoError::kOk);
    EXPECT_EQ(Wait(root.recorder, root.Sync()).error, IoError::kOk);
    folder.Write(*file, 4'000, Pattern(2'000, 7));  // not synced: sectors from 3,584 on are open
    folder.Rename("log", "lost");                   // may be lost
    Wait(folder.recorder, folder.last);
    world_->Crash(0);
  }
  Folder folder(Boot(), "member");
  const FileResult list = Wait(folder.recorder, folder.List());
  ASSERT_EQ(list.names.size(), 1u) << "a rename is atomic";
  auto file = folder.Open(list.names[0], OpenMode::kWrite);
  EXPECT_GE(Wait(folder.recorder, folder.last).size, 9'000u);
  const FileResult content = Wait(folder.recorder, folder.Read(*file, 0, 9'000));
  ASSERT_EQ(content.data.size(), 9'000u);
  EXPECT_TRUE(content.data.view().substr(0, 3'584) == Pattern(5'000).substr(0, 3'584));
  EXPECT_EQ(content.data.view().substr(6'144), std::string(9'000 - 6'144, '\0'));
}

TEST_P(SeamContract, RenameOverAFileLeavesTheOldOrTheNewAfterACrash) {
  for (int round = 0; round < 8; ++round) {
    {
      Host& host = Boot();
      Folder root(host, "");
      Folder folder(host, "member");
      auto before = folder.Open("file", OpenMode::kCreate);
      before->Truncate(0, 100);
      folder.Write(*before, 0, "old");
      folder.Sync(*before);
      Wait(folder.recorder, folder.last);
      Wait(folder.recorder, folder.Sync());
      Wait(root.recorder, root.Sync());
      auto after = folder.Open("file.tmp", OpenMode::kCreate);
      folder.Write(*after, 0, "new");
      Wait(folder.recorder, folder.Sync(*after));
      Wait(folder.recorder, folder.Rename("file.tmp", "file"));
      world_->Crash(0);
    }
    {
      Folder folder(Boot(), "member");
      auto file = folder.Open("file", OpenMode::kRead);
      const FileResult content = Wait(folder.recorder, folder.Read(*file, 0, 10));
      EXPECT_TRUE(content.data.view() == "old" || content.data.view() == "new") << content.data.view();
    }
    world_->End(0);
  }
}

TEST_P(SeamContract, EndWithoutPowerLossKeepsWhatWasDone) {
  {
    Folder folder(Boot(), "member");
    auto file = folder.Open("a", OpenMode::kCreateNew);
    EXPECT_EQ(Wait(folder.recorder, folder.Write(*file, 0, "unsynced")).error, IoError::kOk);
    world_->End(0);
  }
  Folder folder(Boot(), "member");
  auto file = folder.Open("a", OpenMode::kWrite);  // the lock ended with its holder
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 10)).data.view(), "unsynced");
}

TEST_P(SeamContract, HostsHaveFoldersOfTheirOwn) {
  Folder first(Boot(0), "same");
  Folder second(Boot(1), "same");
  auto file = first.Open("a", OpenMode::kCreateNew);
  EXPECT_EQ(Wait(first.recorder, first.last).error, IoError::kOk);
  EXPECT_TRUE(Wait(second.recorder, second.List()).names.empty());
}

TEST_P(SeamContract, FullDiskIsSaid) {
  if (!world_->LimitDisk(0, 64 * 1024)) {
    std::printf("skipped: this world cannot limit a disk\n");
    GTEST_SKIP();
  }
  Folder folder(Boot(), "member");
  auto file = folder.Open("a", OpenMode::kCreateNew);
  EXPECT_EQ(Wait(folder.recorder, folder.Write(*file, 0, Pattern(1'024))).error, IoError::kOk);
  file->Preallocate(1'048'576, 100);
  EXPECT_EQ(Wait(folder.recorder, 100).error, IoError::kNoSpace);
  EXPECT_EQ(Wait(folder.recorder, folder.Write(*file, 1'024, Pattern(1'048'576))).error, IoError::kNoSpace);
  EXPECT_EQ(Wait(folder.recorder, folder.Read(*file, 0, 1'024)).data.view(), Pattern(1'024));
}

}  // namespace
}  // namespace detcd
