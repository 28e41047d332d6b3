// After healing the cluster serves again through every member that is not lost for good, within a bound computed from
// the configuration: through each a put and a linearizable read succeed. A read through a member needs a leader, a
// commit, and that member caught up, so nothing else has to be asked. The verdict tells who waits for whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

// True time from healing to service through every member: 30 election timeouts (a few split votes, each up to twice the
// timeout on drifting clocks, reconnects with back-off and catching up) and four round trips and syncs of the slowest
// kind that began before the healing.
Duration Bound(const WorldObservation& world, Duration longest_delay, Duration longest_sync);

enum class ProbeKind : uint8_t { kPut, kRead };

class Convergence {
 public:
  Convergence(const WorldObservation& world, Verdict& verdict);

  // All faults are over; from now on the bound runs.
  void OnHealed(Moment moment, Duration bound);
  // After OnHealed: `member` is gone for good, the others must serve without it.
  void OnLost(MemberId member);
  // A probe that was asked of `member` after healing has ended. Failed ones are to be repeated by the world.
  void OnProbe(MemberId member, ProbeKind kind, bool ok, Moment moment);
  void OnMember(const MemberObservation& seen, Moment moment);
  // At the end of a run that healed: nothing may be missing.
  void Finish(Moment moment);

  bool converged() const;

 private:
  struct Member {
    MemberObservation last;  // without `changed`
    bool put = false;
    bool read = false;
  };

  void Judge(Moment moment);

  Verdict& verdict_;
  std::vector<Member> members_;
  std::optional<Instant> healed_;
  Duration bound_;
  bool converged_ = false;
};

}  // namespace detcd::checker
