#include "realnet/file_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/realnet/real_world.h"

namespace detcd::realnet {
namespace {

class FileCallsTest : public ::testing::Test {
 protected:
  FileCallsTest() : folder_(OpenFolder(temporary_.path(), false).descriptor) {}
  ~FileCallsTest() override { ::close(folder_); }

  mode_t ModeOf(const std::string& name) {
    struct stat status = {};
    EXPECT_EQ(::stat((temporary_.path() + "/" + name).c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  TemporaryFolder temporary_;
  int folder_;
};

TEST_F(FileCallsTest, NamesThatLeaveTheFolderAreNotPlain) {
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("/a"), std::string("a\0b", 3), std::string(256, 'a')}) {
    EXPECT_FALSE(IsPlainName(name)) << name;
  }
  for (const std::string& name : {std::string("a"), std::string("..."), std::string(".a"), std::string(255, 'a')}) {
    EXPECT_TRUE(IsPlainName(name)) << name;
  }
}

TEST_F(FileCallsTest, FilesAndFoldersAreForTheirOwnerOnly) {
  const OpenedFile file = OpenFile(folder_, "file", OpenMode::kCreateNew);
  ASSERT_EQ(file.error, IoError::kOk);
  EXPECT_EQ(ModeOf("file"), 0600u);
  ::close(file.descriptor);
  const OpenedFile folder = OpenFolder(temporary_.path() + "/a/b", true);
  ASSERT_EQ(folder.error, IoError::kOk);
  EXPECT_EQ(ModeOf("a"), 0700u);
  EXPECT_EQ(ModeOf("a/b"), 0700u);
  ::close(folder.descriptor);
}

TEST_F(FileCallsTest, FolderInPlaceOfAFileAndTheReverseAreInvalid) {
  ::close(OpenFolder(temporary_.path() + "/folder", true).descriptor);
  ::close(OpenFile(folder_, "file", OpenMode::kCreateNew).descriptor);
  EXPECT_EQ(OpenFile(folder_, "folder", OpenMode::kRead).error, IoError::kInvalid);
  EXPECT_EQ(OpenFile(folder_, "folder", OpenMode::kWrite).error, IoError::kInvalid);
  EXPECT_EQ(OpenFolder(temporary_.path() + "/file", true).error, IoError::kInvalid);
  EXPECT_EQ(OpenFolder(temporary_.path() + "/file", false).error, IoError::kInvalid);
}

TEST_F(FileCallsTest, MorePiecesThanOneCallTakesAreWrittenWhole) {
  const OpenedFile file = OpenFile(folder_, "file", OpenMode::kCreateNew);
  std::vector<Bytes> pieces;
  std::string expected;
  for (int i = 0; i < 2'500; ++i) {
    pieces.push_back(i % 7 == 0 ? Bytes() : Bytes::Copy(std::to_string(i)));
    expected += pieces.back().view();
  }
  EXPECT_EQ(WriteAll(file.descriptor, 0, pieces), IoError::kOk);
  Bytes read;
  EXPECT_EQ(ReadUpTo(file.descriptor, 0, ~uint64_t{0}, read), IoError::kOk);
  EXPECT_EQ(read.view(), expected);
  EXPECT_EQ(WriteAll(file.descriptor, 0, {}), IoError::kOk);
  EXPECT_EQ(WriteAll(file.descriptor, 0, std::vector<Bytes>(600)), IoError::kOk);
  ::close(file.descriptor);
}

TEST_F(FileCallsTest, OffsetsBeyondTheSystemsAreRefused) {
  const OpenedFile file = OpenFile(folder_, "file", OpenMode::kCreateNew);
  EXPECT_EQ(WriteAll(file.descriptor, ~uint64_t{0}, {Bytes::Copy("a")}), IoError::kInvalid);
  EXPECT_EQ(AllocateTo(file.descriptor, ~uint64_t{0}), IoError::kNoSpace);
  EXPECT_EQ(TruncateTo(file.descriptor, ~uint64_t{0}), IoError::kInvalid);
  Bytes read;
  EXPECT_EQ(ReadUpTo(file.descriptor, ~uint64_t{0}, 10, read), IoError::kOk);
  EXPECT_TRUE(read.empty());
  EXPECT_EQ(AllocateTo(file.descriptor, 0), IoError::kOk);
  ::close(file.descriptor);
}

TEST_F(FileCallsTest, FullFoldersAreNotRemoved) {
  ::close(OpenFolder(temporary_.path() + "/a/b", true).descriptor);
  EXPECT_EQ(RemoveEntry(folder_, "a"), IoError::kExists);
}

}  // namespace
}  // namespace detcd::realnet
