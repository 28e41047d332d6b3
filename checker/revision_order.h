// Linearizability of the KV service, judged online: the revision is the order, so no search is needed.
//
// Properties (checking.md 2): K1 K2 K3 revisions are unique and dense, K4 real time, K5 K6 K10 K11 K12 each answer is
// the model's, K7 transactions are atomic, K8 take the right branch, K9 are refused for duplicate keys exactly as etcd
// does, K13 past reads, K14 no ghost, K15 at most once, K16 a definite error never took effect, K18 ignore_value, C1
// compactions, H1 H2 hashes, R1 linearizable and R2 serializable reads, R3 one incarnation of a member never answers
// backwards.
//
// Why it is exact. Let rev(o) be the revision in o's answer, kappa(o) = 2 rev(o) for an operation that made the
// revision and 2 rev(o) + 1 for any other. The specification's state contains the revision, so any legal order lists
// operations by kappa. Conversely, order answered operations by (kappa, call): if every answer is the model's at its
// place, and no `a` that returned before `b` was called has a larger kappa, this order is legal and keeps real time
// (theorem 1). The log says what each revision is, so the operations without an answer matter only as authors of
// revisions that no answered operation owns: they need a matching of those revisions to open operations of the same
// effect, called before the revision was committed (theorem 2). Of operations with one effect, any can stand for any
// other, and both commits and calls are in order of time: the i-th revision takes the i-th operation, or there is no
// matching. Commits are a tighter bound than the theorem's "first answer that shows it", and just as true.
//
// A transaction that changed nothing is a read: its comparisons and ranges hold at the revision in its header. Compactions
// make no revision, but each raises the compaction revision, which is a second clock: what was compacted before a read
// was called, or before the revision in its answer was made, it must have seen; an error `compacted` needs a compaction.
//
// Definite errors about the state (compacted, future revision, key not found) hold somewhere between call and return.
// They change nothing, so the earliest place that fits is the best one (exchange argument); it counts for those that
// are called later like an answer at that place.
//
// Duties of the world: events in order; an entry is shown committed before any answer that rests on it ends; operations
// that check liveness are operations like any other. A wrong log can raise a false alarm, never hide a violation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checker/history.h"
#include "checker/kv_model.h"
#include "checker/requests.h"
#include "checker/verdict.h"

namespace detcd::checker {

class RevisionOrder {
 public:
  explicit RevisionOrder(Verdict& verdict);

  void OnCall(const Operation& operation);
  void OnEnd(const Operation& operation);
  void OnCommitted(const CommittedEntry& entry, Moment moment);
  void OnStarted(MemberId member, Moment moment);

  // The state at every revision committed so far.
  const KvModel& model() const { return model_; }
  // The compaction that raised the compaction revision to `compacted` has been committed.
  bool HasCompacted(int64_t compacted) const { return compactions_.contains(compacted); }

 private:
  // A place in the order: kappa, and who stands there.
  struct Place {
    int64_t kappa = 0;
    uint64_t operation = 0;
  };
  struct Record {
    Operation operation;
    Place seen_at_call;             // the highest place returned before the call
    int64_t compacted_at_call = 0;
  };
  // A change or a compaction.
  struct Made {
    Effect effect;
    std::string text;               // EffectText of its request
    int64_t compacted = 0;          // the compaction revision it met
    Moment committed;
    uint64_t owner = 0;             // the answered operation that made it; 0: none so far
    bool owned = false;
  };
  // Operations and what was made with one effect that are not paired yet, both in order of time.
  struct Unpaired {
    std::vector<uint64_t> operations;
    std::vector<size_t> made;       // indexes into made_
    std::vector<uint64_t> refused;  // called, and never to take effect
  };
  // The highest revision that one incarnation of a member answered, as it rose.
  struct MemberAnswers {
    Moment started;
    std::vector<std::pair<uint64_t, Place>> risen;  // event, place
  };

  Record* Find(const Operation& operation);
  MemberAnswers* Server(const Operation& operation);
  const Place* AnsweredBefore(const Operation& operation);
  void CloseWithoutEffect(Record& record, bool refused);
  void JudgeUnpaired(const Unpaired& unpaired, Moment moment);
  bool Own(Record& record, size_t made);
  void JudgeChange(Record& record);
  void JudgeIdle(Record& record);
  void JudgeCompaction(Record& record);
  void JudgeHash(Record& record);
  bool ReadsAreCompacted(Record& record, const Request& request, bool inside);
  void JudgeError(Record& record);
  void JudgeFutureRevision(Record& record);
  void JudgeCompacted(Record& record);
  void Settle(Record& record, int64_t kappa);
  void JudgeMember(Record& record);
  void Broken(std::string_view property, std::string_view trouble, const Record& record, std::string what,
              uint64_t other = 0);

  Verdict& verdict_;
  KvModel model_;
  std::vector<Made> made_;  // in order of commit
  std::vector<size_t> by_revision_;           // from revision 2 on: indexes into made_
  std::map<int64_t, size_t> compactions_;     // by compaction revision: indexes into made_
  std::map<uint64_t, Record> records_;
  std::map<std::string, Unpaired> unpaired_;  // by EffectText
  // Hashes by (revision, compaction revision): who answered first, and what.
  std::map<std::pair<int64_t, int64_t>, std::pair<uint64_t, uint32_t>> hashes_;
  std::map<MemberId, MemberAnswers> members_;
  Place highest_;           // over all that returned
};

}  // namespace detcd::checker
