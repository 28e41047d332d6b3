#include "core/base/bytes.h"

namespace detcd {
namespace {

TEST(BytesTest, EmptyNeedsNoBlock) {
  EXPECT_TRUE(Bytes().empty());
  EXPECT_EQ(Bytes::Copy("").data(), nullptr);
  EXPECT_EQ(Bytes(), Bytes::Copy(""));
  EXPECT_TRUE(Bytes::Build(0, [](char*) { FAIL() << "nothing to fill"; }).empty());
}

TEST(BytesTest, CopyIsIndependentOfItsSource) {
  std::string source = "abc";
  const Bytes bytes = Bytes::Copy(source);
  source[0] = 'x';
  EXPECT_EQ(bytes.view(), "abc");
}

TEST(BytesTest, CopiesAndSlicesShareTheBlock) {
  Bytes tail;
  {
    const Bytes whole = Bytes::Copy("abcdef");
    const Bytes second = whole;
    EXPECT_EQ(second.data(), whole.data());
    tail = whole.Slice(2, 4);
    EXPECT_EQ(tail.data(), whole.data() + 2);
  }
  // The slice keeps the block alive (the address sanitizer would tell).
  EXPECT_EQ(tail.view(), "cdef");
  EXPECT_EQ(tail.Slice(1, 2).view(), "de");
  EXPECT_TRUE(tail.Slice(4, 0).empty());
}

TEST(BytesTest, AssignmentSurvivesItself) {
  Bytes bytes = Bytes::Copy("abc");
  const Bytes& same = bytes;
  bytes = same;
  EXPECT_EQ(bytes.view(), "abc");
  bytes = bytes.Slice(1, 1);
  EXPECT_EQ(bytes.view(), "b");
}

TEST(BytesTest, AMovedFromValueIsEmpty) {
  Bytes from = Bytes::Copy("abc");
  const Bytes to = std::move(from);
  EXPECT_EQ(to.view(), "abc");
  EXPECT_TRUE(from.empty());  // NOLINT: the point of the test
}

TEST(BytesTest, StaticBytesAreNotCopied) {
  static constexpr char kText[] = "literal";
  EXPECT_EQ(Bytes::Static(kText).data(), kText);
  EXPECT_EQ(Bytes::Static(kText).Slice(1, 3).view(), "ite");
}

TEST(BytesTest, EqualityIsOfContent) {
  EXPECT_EQ(Bytes::Copy("abc"), Bytes::Copy("xabc").Slice(1, 3));
  EXPECT_NE(Bytes::Copy("abc"), Bytes::Copy("abd"));
  EXPECT_NE(Bytes::Copy("abc"), Bytes::Copy("ab"));
}

}  // namespace
}  // namespace detcd
