#include "core/raft/quorum.h"

#include <algorithm>
#include <bit>

namespace detcd::raft {
namespace {

VoterSet VotersUpTo(uint64_t count) {
  VoterSet voters;
  for (uint64_t id = count; id > 0; --id) voters.AddVoter(MemberId(id));
  return voters;
}

TEST(QuorumTest, VotersAreSortedAndCountedOnce) {
  VoterSet voters({MemberId(3), MemberId(1), MemberId(3)});
  EXPECT_EQ(voters.ids(), (std::vector<MemberId>{MemberId(1), MemberId(3)}));
  EXPECT_TRUE(voters.Contains(MemberId(3)));
  EXPECT_FALSE(voters.Contains(MemberId(2)));
}

TEST(QuorumTest, TwoMajoritiesAlwaysShareAMember) {
  for (uint64_t n = 1; n <= 9; ++n) {
    const size_t majority = VotersUpTo(n).Majority();
    EXPECT_GT(2 * majority, n);
    EXPECT_LE(2 * (majority - 1), n);
  }
}

TEST(QuorumTest, WithoutVotersNothingIsReachedOrWon) {
  VoterSet voters;
  EXPECT_EQ(voters.ReachedByMajority([](MemberId) { return uint64_t{7}; }), 0u);
  EXPECT_FALSE(voters.HasMajority([](MemberId) { return true; }));
  EXPECT_EQ(TallyVotes(voters, {{MemberId(1), true}}), Tally::kLost);
}

TEST(QuorumTest, AnswersOfStrangersDoNotCount) {
  EXPECT_EQ(TallyVotes(VotersUpTo(3), {{MemberId(1), true}, {MemberId(8), true}, {MemberId(9), true}}), Tally::kOpen);
}

// By the definition: the largest value that at least a majority is at or above.
RC_GTEST_PROP(QuorumTest, ReachedByMajorityIsItsDefinition, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 9)));
  const VoterSet voters = VotersUpTo(values.size());
  std::vector<uint64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  RC_ASSERT(voters.ReachedByMajority([&](MemberId id) { return values[id.value - 1]; }) ==
            sorted[values.size() / 2]);
}

// By the definition: won in every, or in no, completion of the missing answers.
RC_GTEST_PROP(QuorumTest, TallyIsItsDefinition, ()) {
  const auto count = *rc::gen::inRange<uint64_t>(1, 8);
  const auto answers = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, 3));
  std::map<MemberId, bool> given;
  uint64_t granted = 0;
  uint64_t missing = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (answers[i] == 2) ++missing;
    if (answers[i] == 2) continue;
    given[MemberId(i + 1)] = answers[i] == 1;
    granted += answers[i] == 1 ? 1 : 0;
  }
  const bool won_by_least = 2 * granted > count;
  const bool won_by_most = 2 * (granted + missing) > count;
  const Tally want = won_by_least ? Tally::kWon : won_by_most ? Tally::kOpen : Tally::kLost;
  RC_ASSERT(TallyVotes(VotersUpTo(count), given) == want);
}

// --- joint configurations

// Voters 1..5 of two sets, as bits.
VoterSet VotersOf(uint32_t bits) {
  VoterSet voters;
  for (uint64_t id = 1; id <= 5; ++id) {
    if ((bits >> (id - 1)) & 1) voters.AddVoter(MemberId(id));
  }
  return voters;
}

bool IsMajority(uint32_t set, uint32_t voters) {
  return 2 * std::popcount(set & voters) > std::popcount(voters);
}
bool IsQuorum(uint32_t set, uint32_t incoming, uint32_t outgoing) {
  return IsMajority(set, incoming) && (outgoing == 0 || IsMajority(set, outgoing));
}

constexpr uint32_t kSets = 1u << 5;

TEST(JointQuorumTest, AskedOfEverySetItIsItsDefinition) {
  for (uint32_t incoming = 0; incoming < kSets; ++incoming) {
    for (uint32_t outgoing = 0; outgoing < kSets; ++outgoing) {
      const JointVoters voters{VotersOf(incoming), VotersOf(outgoing)};
      for (uint32_t set = 0; set < kSets; ++set) {
        ASSERT_EQ(voters.HasQuorum([&](MemberId id) { return ((set >> (id.value - 1)) & 1) != 0; }),
                  IsQuorum(set, incoming, outgoing))
            << incoming << " " << outgoing << " " << set;
      }
    }
  }
}

// Every pair of sets, every vector of four match indexes: the highest index whose holders are a quorum.
TEST(JointQuorumTest, ReachedByQuorumIsItsDefinitionForAllMatchVectors) {
  constexpr uint32_t kValues = 4;
  constexpr uint32_t kVectors = kValues * kValues * kValues * kValues * kValues;
  for (uint32_t incoming = 0; incoming < kSets; ++incoming) {
    for (uint32_t outgoing = 0; outgoing < kSets; ++outgoing) {
      const JointVoters voters{VotersOf(incoming), VotersOf(outgoing)};
      for (uint32_t vector = 0; vector < kVectors; ++vector) {
        const auto match = [&](MemberId id) -> uint64_t { return (vector >> (2 * (id.value - 1))) & 3; };
        uint64_t want = 0;
        for (uint64_t index = 1; index < kValues; ++index) {
          uint32_t holders = 0;
          for (uint64_t id = 1; id <= 5; ++id) holders |= match(MemberId(id)) >= index ? 1u << (id - 1) : 0;
          if (IsQuorum(holders, incoming, outgoing)) want = index;
        }
        if (voters.ReachedByQuorum(match) != want) FAIL() << incoming << " " << outgoing << " " << vector;
      }
    }
  }
}

// Every pair of sets, every set of answers: won in every, or in no, completion of the missing ones.
TEST(JointQuorumTest, TallyIsItsDefinitionForAllAnswers) {
  for (uint32_t incoming = 1; incoming < kSets; ++incoming) {
    for (uint32_t outgoing = 0; outgoing < kSets; ++outgoing) {
      const JointVoters voters{VotersOf(incoming), VotersOf(outgoing)};
      for (uint32_t answered = 0; answered < kSets; ++answered) {
        for (uint32_t granted = answered;; granted = (granted - 1) & answered) {
          std::map<MemberId, bool> answers;
          for (uint64_t id = 1; id <= 5; ++id) {
            if ((answered >> (id - 1)) & 1) answers[MemberId(id)] = ((granted >> (id - 1)) & 1) != 0;
          }
          const bool won_by_least = IsQuorum(granted, incoming, outgoing);
          const bool won_by_most = IsQuorum(granted | ~answered, incoming, outgoing);
          const Tally want = won_by_least ? Tally::kWon : won_by_most ? Tally::kOpen : Tally::kLost;
          if (TallyVotes(voters, answers) != want) FAIL() << incoming << " " << outgoing << " " << answered << " " << granted;
          if (granted == 0) break;
        }
      }
    }
  }
}

TEST(JointQuorumTest, OneSetTwiceIsThatSet) {
  const VoterSet three = VotersUpTo(3);
  const auto value = [](MemberId id) { return id.value * 10; };
  EXPECT_EQ((JointVoters{three, three}.ReachedByQuorum(value)), three.ReachedByMajority(value));
  EXPECT_TRUE((JointVoters{three, three}.IsJoint()));
  EXPECT_FALSE((JointVoters{three, {}}.IsJoint()));
}

}  // namespace
}  // namespace detcd::raft
