// Raft's safety, judged after every event from what members show and send. A rolling hash of each log makes
// whole-prefix comparisons one word: h(i) = H(h(i-1), term(i), digest(i)), so equal h(i) means equal logs up to i.
// Cost: O(1) for an event that changed nothing, O(changed entries) otherwise.
//
//   F1  at most one leader a term.
//   F2  one vote a term: in memory it never changes once given; the votes that left a member are the ones it recovers.
//   F3  a member's term never falls, and after a restart is not below that of any message it has sent.
//   F4  a leader never cuts or changes its own log.
//   F5  log matching: (index, term) names one log prefix.
//   F6  a leader of a term has every entry that was committed in an earlier term.
//   F7  state-machine safety: what one member holds to be committed at an index, all do, for ever.
//   F8  a leader commits only up to an entry of its own term that a quorum has on disk (Raft 5.4.2, figure 8).
//   F9  every committed entry is on the disks of members that intersect every quorum, from its commit on.
//   F10 commit and applied index never fall in an incarnation; applied <= commit <= last.
//   F19 an acknowledgement leaves only when what it acknowledges is durable; what a member believed to be durable is
//       there after a restart.
//
// F19 over restarts. A durable entry may legally vanish only when a leader overwrote it. The judge sees the log in
// memory, so it sees each overwriting. After one at index j the disk may still have the old entries (all that were
// durable) or the first new one: recovery must show one of the two, never a log that merely ends. (The new entry's term
// need not be higher than the old one's: a leader of a later term may carry an old entry.)
// A cut below an acknowledgement in the term of that acknowledgement is wrong at once: that term's leader only appends.
//
// F8 and F9 go by what members believe to be durable; after a crash, by what recovery shows. A member that is down
// counts with what it last believed, because its disk still has it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class RaftSafety {
 public:
  RaftSafety(const WorldObservation& world, Verdict& verdict);

  // A message that left its sender. May come before the sender is observed after the same event.
  void OnSent(const MessageObservation& message, Moment moment);
  void OnMember(const MemberObservation& seen, Moment moment);

  // The highest index that some member has held to be committed.
  LogIndex committed() const { return LogIndex(canon_.size()); }

 private:
  struct Cell {
    Term term;
    uint64_t chain = 0;  // of the log up to here
  };
  struct Committed {
    uint64_t chain = 0;
    Term committed_in;  // the term of the member that committed it first; never falls with the index
  };
  // Durable entries [first, last] that were overwritten in memory, perhaps not on disk yet.
  struct Overwritten {
    LogIndex first;
    LogIndex last;
    uint64_t first_chain = 0;
    uint64_t last_chain = 0;
  };
  struct Member {
    MemberId id;
    bool seen = false;
    MemberObservation last;      // without `changed`
    std::vector<Cell> log;       // of index 1 and on
    LogIndex held;               // highest index up to which its disk has the committed log
    Term sent_term;              // highest of any message it sent
    std::map<Term, MemberId> votes;  // that left it, by term
    std::vector<std::pair<Term, LogIndex>> unresolved;  // acknowledgements sent since it was last observed
    Term acknowledged_in;        // the newest term in which it acknowledged entries
    LogIndex acknowledged;       // highest in that term
    LogIndex kept;               // all up to here must be on its disk
    uint64_t kept_chain = 0;
    std::vector<Overwritten> overwritten;
  };

  Member& Of(MemberId id);
  static uint64_t ChainAt(const Member& member, LogIndex index);
  void Broken(const char* property, const char* trouble, const Member& member, std::string what);

  void JudgeRecovery(Member& member, const MemberObservation& seen);
  void JudgeProgress(const Member& member, const MemberObservation& seen);
  void TakeLog(Member& member, const MemberObservation& seen);
  void Overwrite(Member& member, const MemberObservation& seen, LogIndex first);
  void JudgeLeader(const Member& member);
  void JudgeHasCommitted(const Member& leader);
  void JudgeCommit(Member& member, LogIndex before);
  void Resolve(Member& member);
  void UpdateHeld(Member& member);
  void JudgeHolders();
  size_t HoldersOf(LogIndex index) const;

  Verdict& verdict_;
  const LogIndex bootstrap_index_;
  Moment now_;
  std::vector<Member> members_;  // in the order of the world's list
  std::map<Term, MemberId> leaders_;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint64_t> prefixes_;  // (index, term) -> chain
  std::vector<Committed> canon_;
};

}  // namespace detcd::checker
