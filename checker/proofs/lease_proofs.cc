// Leader leases are exclusive: no read by lease is stale (see lease_model.h), for 3 and 5 voters, every election timeout,
// every drift below 1 and every pause; and the bound of core/raft/leader_lease.h is the longest that is safe.
#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "checker/proofs/lease_model.h"
#include "checker/proofs/proof.h"
#include "core/raft/leader_lease.h"

namespace detcd::proofs {
namespace {

using z3::expr;

// Settings of a cluster: real numbers, in any unit of time.
struct Settings {
  expr election_timeout;
  expr lease;
  expr drift;    // d: each clock's rate is in [1 - d, 1 + d]
  expr granule;  // g: a reading is behind its clock by less than this
};

Settings AnySettings(Session& session) {
  return {session.Real("election_timeout"), session.Real("lease"), session.Real("drift"), session.Real("granule")};
}

std::vector<expr> Declared(const Settings& of) {
  return {of.election_timeout > 0, of.lease > 0, of.drift >= 0, of.drift < 1, of.granule >= 0, of.granule < of.election_timeout};
}

// (L + g)(1 + d) <= (T - g)(1 - d).
expr WithinBound(const Settings& of) {
  return (of.lease + of.granule) * (1 + of.drift) <= (of.election_timeout - of.granule) * (1 - of.drift);
}

LeaseTimes AnyTimes(Session& session) { return {session.Real("lease_lasts"), session.Real("promise_lasts")}; }

// The products of drift and time, apart from everything else. In true time x a clock advances by at least (1 - d) x and at
// most (1 + d) x, and two readings differ from that by less than g. So readings less than L apart are less than
// (L + g) / (1 - d) apart in true time, readings at least T apart at least (T - g) / (1 + d); and a lease is within the
// bound exactly when the former is no longer than the latter.
bool ClocksComeToThat(Session& session) {
  const Settings of = AnySettings(session);
  const LeaseTimes times = AnyTimes(session);
  std::vector<expr> facts = Declared(of);
  facts.push_back(times.lease_lasts * (1 - of.drift) == of.lease + of.granule);
  facts.push_back(times.promise_lasts * (1 + of.drift) == of.election_timeout - of.granule);
  const expr time = session.Real("true_time");
  const expr advance = session.Real("advance");
  const expr shown = session.Real("shown");
  std::vector<expr> clock = facts;
  clock.push_back(time >= 0 && (1 - of.drift) * time <= advance && advance <= (1 + of.drift) * time);
  clock.push_back(z3::ite(of.granule == 0, shown == advance, advance - of.granule < shown && shown < advance + of.granule));
  return !session.Refute(clock, z3::implies(shown < of.lease, time < times.lease_lasts)) &&
         !session.Refute(clock, z3::implies(shown >= of.election_timeout, time >= times.promise_lasts)) &&
         !session.Refute(facts, WithinBound(of) == (times.lease_lasts <= times.promise_lasts));
}

Outcome ClocksDiffer() { return {.answer = Answer::kCounterexample, .story = {"drift and granule come to other true times"}}; }

Outcome ProveExclusive(Session& session, unsigned voters) {
  if (!ClocksComeToThat(session)) return ClocksDiffer();
  const LeaseTimes times = AnyTimes(session);
  const LeaseModel model(session, voters, {}, times);
  std::vector<expr> facts = model.StaleRead();
  facts.push_back(times.promise_lasts > 0 && times.lease_lasts <= times.promise_lasts);
  const auto run = session.Find(facts);
  if (!run) return Outcome::Proved();
  return {.answer = Answer::kCounterexample, .story = model.Story(*run)};
}

// The simulator's swarm draws bounds up to this.
constexpr int kScenarioDrift = 30;

struct Twin {
  const char* name;
  const char* what;
  LeaseRules rules;
  int drift_percent = 0;             // declared, and what the clocks do
  bool lease_counts_drift = true;
  std::optional<Weakness> scenario;  // none: no simulated cluster can be put through it
};

// The stale read that lasts longest: its window is what a simulated run can hit. In units of the election timeout.
Outcome FindStaleRead(Session& session, const Twin& twin) {
  const int slowest = 100 - twin.drift_percent;
  const int fastest = 100 + twin.drift_percent;
  const expr promise_lasts = session.Fraction(100, fastest);
  const expr lease = twin.lease_counts_drift ? session.Fraction(slowest, fastest) : session.Fraction(1, 1);
  const expr lease_lasts = twin.lease_counts_drift ? promise_lasts : session.Fraction(100, slowest);
  const LeaseModel model(session, 3, twin.rules, {lease_lasts, promise_lasts});
  std::vector<expr> facts = model.StaleRead();
  for (const expr& fact : model.Unhurried(session.Fraction(1, 100))) facts.push_back(fact);
  const auto run = session.Maximise(facts, model.checked() - model.written());
  if (!run) return Outcome::Proved();
  Outcome outcome{.answer = Answer::kCounterexample, .story = model.Story(*run)};
  const int64_t lease_units = MillionthsOf(*run, lease);
  outcome.story.insert(outcome.story.begin(), absl::StrFormat("drift %d%%, lease %.4f T on the leader's clock", twin.drift_percent,
                                                              static_cast<double>(lease_units) / 1e6));
  if (!twin.scenario.has_value()) return outcome;
  // A slow leader and fast voters: what the run needs of the drift.
  const int64_t drift_ppm = twin.drift_percent * 10'000;
  outcome.timeline = model.WithEvents(*run, {.weakness = *twin.scenario,
                                             .lease = lease_units,
                                             .drift_ppm_max = drift_ppm,
                                             .drift_ppm = {-drift_ppm, drift_ppm, drift_ppm}});
  return outcome;
}

// --- the bound

// Exactly the leases within the bound are safe: one that lasts longer than a promise, by however little, has a stale read
// with no rule broken. The run is given as terms of the two times, so that it is one for each pair.
Outcome ProveLongest(Session& session) {
  if (!ClocksComeToThat(session)) return ClocksDiffer();
  const LeaseTimes times = AnyTimes(session);
  std::vector<expr> facts{times.promise_lasts > 0, times.promise_lasts < times.lease_lasts};
  const expr step = (times.lease_lasts - times.promise_lasts) / 4;
  const LeaseModel model(session, 3, {}, times);
  const LeaseVoter& leader = model.voters()[0];
  const LeaseVoter& voter = model.voters()[1];
  const LeaseVoter& other = model.voters()[2];
  const expr zero = session.Fraction(0, 1);
  for (const expr& at : {model.round(), voter.sent, voter.arrives, voter.promise_read, voter.answered}) facts.push_back(at == zero);
  facts.push_back(leader.acknowledges && voter.acknowledges && !other.acknowledges);
  facts.push_back(!leader.votes && voter.votes && other.votes && !voter.restarts && !voter.forgets && !voter.vote_for_transfer);
  facts.push_back(!model.transfers());
  for (const expr& at : {voter.vote_read, voter.voted, other.vote_read, other.voted, model.elected(), model.written()}) {
    facts.push_back(at == times.promise_lasts + step);
  }
  for (const expr& at : {model.invoked(), model.received(), model.checked(), model.looked()}) {
    facts.push_back(at == times.promise_lasts + 2 * step);
  }
  if (!session.Refute(facts, All(session, model.StaleRead()))) return Outcome::Proved();
  return {.answer = Answer::kCounterexample, .story = {"some lease beyond the bound has no such stale read"}};
}

// LeaseBound, over integers: the greatest L with (L + g)(1 + d) <= (T - g)(1 - d). Its arithmetic, step by step as in the
// code, for every T and for the drifts given (each makes the division linear).
Outcome ProveFormula(Session& session) {
  const expr timeout = session.Int("timeout");
  const expr whole = session.Int("whole");
  const expr rest = session.Int("rest");
  const expr scaled = session.Int("scaled");
  const int granule = static_cast<int>(raft::kClockGranule.nanos);
  for (const int drift_ppm : {0, 1, 50, 100, 200, 500, 1'000, 10'000, 100'000, 300'000, 500'000, 999'999}) {
    const int slowest = static_cast<int>(raft::kPartsPerMillion) - drift_ppm;
    const int fastest = static_cast<int>(raft::kPartsPerMillion) + drift_ppm;
    const expr promised = timeout - granule;
    const std::vector<expr> facts{timeout > granule,
                                  promised == whole * fastest + rest && rest >= 0 && rest < fastest,
                                  scaled * fastest <= rest * slowest && rest * slowest < (scaled + 1) * fastest};
    const expr lease = whole * slowest + scaled - granule;
    const auto safe = [&](const expr& length) { return (length + granule) * fastest <= promised * slowest; };
    const auto wrong = session.Refute(facts, safe(lease) && !safe(lease + 1));
    if (wrong) {
      return {.answer = Answer::kCounterexample,
              .story = {absl::StrFormat("drift %d ppm, election timeout %d ns", drift_ppm, IntegerOf(*wrong, timeout))}};
    }
  }
  return Outcome::Proved();
}

// The code itself, on a grid: what it computes is within the bound and one nanosecond more is not, as the model says.
Outcome ProveCodeOnGrid(Session& session) {
  for (const int timeout_ms : {50, 100, 500, 1'000, 1'250, 5'000, 50'000}) {
    for (const int drift_ppm : {0, 1, 100, 500, 1'000, 20'000, 300'000, 500'000, 900'000}) {
      const Duration timeout = Millis(timeout_ms);
      const Duration lease = raft::LeaseBound(timeout, drift_ppm);
      // nanos / ((10^6 + ppm) / 10^6), exactly.
      const auto over_rate = [&](Duration duration, int64_t ppm) {
        return session.context().real_val(absl::StrFormat("%d000000/%d", duration.nanos, raft::kPartsPerMillion + ppm).c_str());
      };
      const expr promise_lasts = over_rate(timeout - raft::kClockGranule, drift_ppm);
      const LeaseModel just(session, 3, {}, {over_rate(lease + raft::kClockGranule, -drift_ppm), promise_lasts});
      const LeaseModel beyond(session, 3, {}, {over_rate(lease + raft::kClockGranule + Nanos(1), -drift_ppm), promise_lasts});
      if (!session.Find(just.StaleRead()) && session.Find(beyond.StaleRead())) continue;
      return {.answer = Answer::kCounterexample,
              .story = {absl::StrFormat("LeaseBound(%d ms, %d ppm) = %d ns is not the longest safe lease", timeout_ms, drift_ppm,
                                        lease.nanos)}};
    }
  }
  return Outcome::Proved();
}

}  // namespace

std::vector<Proof> LeaseProofs() {
  std::vector<Proof> proofs;
  for (const unsigned voters : {3u, 5u}) {
    proofs.push_back({.name = "lease",
                      .what = "no read by lease is stale, whatever the drift declared, the pauses, restarts, transfers",
                      .voters = voters,
                      .run = [voters](Session& session) { return ProveExclusive(session, voters); }});
  }
  for (const Twin& twin : {
           Twin{"lease/without-drift", "the lease is the election timeout", {}, kScenarioDrift, false,
                Weakness::kLeaseWithoutDrift},
           Twin{"lease/no-wait-after-restart", "a voter votes at once after its start", {.waits_after_start = false},
                kScenarioDrift, true, Weakness::kNoWaitAfterRestart},
           Twin{"lease/kept-through-transfer", "the lease goes on after a transfer was tried", {.ends_with_transfer = false},
                kScenarioDrift, true, Weakness::kLeaseThroughTransfer},
           // The clocks are perfect from here on.
           Twin{"lease/from-receipt", "the lease counts from the acknowledgements' arrival", {.from_sending = false}},
           Twin{"lease/promise-forgotten-with-term", "a voter's promise ends when its term rises",
                {.promise_outlives_term = false}},
           Twin{"lease/promise-from-early-reading", "a voter's promise counts from a reading before the round was there",
                {.promise_read_after_round = false}},
           Twin{"lease/checked-before-request", "the clock is read before the request's bytes are",
                {.checked_after_request = false}},
       }) {
    proofs.push_back({.name = twin.name,
                      .what = twin.what,
                      .voters = 3,
                      .expected = Answer::kCounterexample,
                      .run = [twin](Session& session) { return FindStaleRead(session, twin); }});
  }
  return proofs;
}

std::vector<Proof> LeaseBoundProofs() {
  return {{.name = "lease-bound",
           .what = "every lease beyond (T - g)(1 - d) / (1 + d) - g has a stale read",
           .voters = 3,
           .run = ProveLongest},
          {.name = "lease-bound-formula",
           .what = "LeaseBound's integer arithmetic is that bound, rounded down, for every T",
           .run = ProveFormula},
          {.name = "lease-bound-code",
           .what = "what LeaseBound returns is safe in the model and one nanosecond more is not, on a grid",
           .voters = 3,
           .run = ProveCodeOnGrid}};
}

}  // namespace detcd::proofs
