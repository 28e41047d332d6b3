#include "core/base/types.h"

#include <type_traits>

#include "core/base/time.h"

namespace detcd {
namespace {

static_assert(!std::is_convertible_v<uint64_t, Term> && !std::is_convertible_v<Term, uint64_t>);
static_assert(!std::is_constructible_v<Term, LogIndex>, "a term is no index");
static_assert(!std::is_convertible_v<Duration, Instant>);

TEST(StrongTest, CountsAndDistances) {
  LogIndex index(5);
  EXPECT_EQ(index + 2, LogIndex(7));
  EXPECT_EQ(index - 2, LogIndex(3));
  EXPECT_EQ(LogIndex(7) - index, 2u);
  EXPECT_EQ(++index, LogIndex(6));
}

TEST(StrongTest, ZeroIsBeforeTheFirst) {
  EXPECT_TRUE(Term().IsZero());
  EXPECT_FALSE(Term(1).IsZero());
  EXPECT_LT(Term(), Term(1));
}

TEST(StrongTest, OrderIsUnsigned) { EXPECT_GT(MemberId(0x8000'0000'0000'0000), MemberId(1)); }

TEST(RevisionTest, OrderIsSigned) {
  EXPECT_LT(Revision(-1), Revision());
  EXPECT_EQ(Revision(3) - 4, Revision(-1));
}

TEST(TimeTest, UnitsAndDifferences) {
  EXPECT_EQ(Seconds(1), Millis(1'000));
  EXPECT_EQ(Millis(1), Micros(1'000));
  EXPECT_EQ(Micros(1), Nanos(1'000));
  EXPECT_EQ(Instant{5} - Instant{7}, Nanos(-2));
  EXPECT_EQ(Instant{5} + Nanos(2), Instant{7});
  EXPECT_EQ(Seconds(7) / 2, Millis(3'500));
  EXPECT_EQ(Nanos(1'999'999).millis(), 1);
}

}  // namespace
}  // namespace detcd
