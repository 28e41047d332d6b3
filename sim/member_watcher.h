// Reads one member's state after an event and tells the judges. Costs a few comparisons when nothing changed: log changes
// are found against a shadow of the log, from its top down.
#pragma once

#include <vector>

#include "checker/observation.h"
#include "checker/panel.h"
#include "core/member/member.h"

namespace detcd::sim {

// The committed log as it was shown to the judges, and who leads how often.
struct CommittedLog {
  std::vector<checker::EntryMark> marks;  // of index 1 and on
};

checker::EntryMark MarkOf(const raft::Entry& entry);

class MemberWatcher {
 public:
  MemberWatcher(MemberId id, CommittedLog& committed) : committed_(committed) { seen_.member = id; }

  // A new incarnation is about to run, with or without pre-vote.
  void Started(uint32_t incarnation, bool pre_vote);
  // The member after an event in which its code ran. `local` is its clock's reading; `behind`: events wait for it.
  void Observe(const member::Member& member, Instant local, bool behind, checker::Moment moment, checker::Panel& panel);

  // As last observed.
  const checker::MemberObservation& seen() const { return seen_; }
  // Whether it was then other than before in what only trouble changes once a leader is known: term, vote, role, leader,
  // entries of its log lost or replaced. First of an incarnation: other than the last one in term, vote or such entries.
  bool changed() const { return changed_; }
  bool recovered() const { return recovered_; }
  // The highest entry that the member, when it was last observed, held to be durable; 0: none.
  LogIndex kept() const { return kept_; }
  Term kept_term() const { return kept_term_; }

 private:
  void ShowLeading(const raft::RaftState& raft);
  void TakeLog(const raft::RaftLog& log);
  void ShowCommitted(const raft::RaftLog& log, checker::Moment moment, checker::Panel& panel);

  CommittedLog& committed_;
  checker::MemberObservation seen_;
  std::vector<checker::EntryMark> shadow_;  // of index 1 and on
  bool recovered_ = false;                  // observed in this incarnation
  bool changed_ = false;
  LogIndex kept_;
  Term kept_term_;
  // The end of the log as the last incarnation that was observed had it.
  LogIndex last_before_;
  checker::EntryMark mark_before_;
};

// All keys of the member's store, in key order.
std::vector<checker::FinalKey> FinalKeys(const member::Member& member);

// What judges may see of a message.
checker::MessageObservation Observe(const raft::Message& message);

}  // namespace detcd::sim
