#include "scenarios/shrink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/digest.h"
#include "scenarios/runner.h"
#include "scenarios/scenario_text.h"

namespace detcd::scenario {
namespace {

uint64_t Fingerprint(const Scenario& scenario) { return DigestBytes(scenario.SerializeAsString()); }

class Shrinking {
 public:
  Shrinking(const Scenario& from, const ShrinkPasses& passes, const ShrinkOptions& options, ShrinkJudge& judge,
            ShrinkListener& listener)
      : passes_(passes), options_(options), judge_(judge), listener_(listener), best_(from) {
    tried_.insert(Fingerprint(from));
  }

  ShrinkResult Go() {
    bool minimal = Reduce();
    strict_ = true;
    std::set<Place> asleep;
    while (minimal && Others() < kOtherSeedsWanted && Round(passes_.hardenings, true, asleep)) {
      minimal = Reduce();
      asleep.clear();
    }
    return {.best = best_, .progress = progress_, .costs = std::move(costs_), .minimal = minimal};
  }

 private:
  bool MayGoOn() const { return progress_.runs < options_.runs_max && !judge_.Interrupted(); }

  using Place = std::pair<size_t, uint32_t>;  // a pass and a level of it

  // Whether no reduction is left; false: the bound ended it.
  bool Reduce() {
    std::set<Place> asleep;
    while (MayGoOn()) {
      const bool all = asleep.empty();
      if (Round(passes_.reductions, false, asleep)) continue;
      asleep.clear();
      if (all && !Round(passes_.second_chances, false, asleep)) return MayGoOn();
      asleep.clear();
    }
    return false;
  }

  // Whether anything was taken. `rise`: only what fails under more other seeds is. What takes nothing falls asleep.
  bool Round(const std::vector<ShrinkPass>& passes, bool rise, std::set<Place>& asleep) {
    const uint64_t before = progress_.changes;
    for (size_t i = 0; i < passes.size(); ++i) {
      progress_.pass = passes[i].name;
      for (uint32_t level = 0; level < passes[i].levels && MayGoOn(); ++level) {
        const uint64_t before_level = progress_.changes;
        if (asleep.contains({i, level})) continue;
        Level(passes[i].edits(best_, level), rise);
        if (progress_.changes == before_level) asleep.insert({i, level});
      }
    }
    return progress_.changes != before;
  }

  void Level(const std::vector<ShrinkEdit>& edits, bool rise) {
    size_t next = 0;
    while (next < edits.size() && MayGoOn() && !(rise && Others() >= kOtherSeedsWanted)) {
      std::vector<Scenario> candidates;
      std::vector<size_t> edit_of;
      std::set<uint64_t> batch;
      const uint64_t most = std::min<uint64_t>(options_.batch, options_.runs_max - progress_.runs);
      while (next < edits.size() && candidates.size() < most) {
        Scenario candidate = best_;
        edits[next++](candidate);
        const uint64_t fingerprint = Fingerprint(candidate);
        if (rise && IsFew(best_) && !IsFew(candidate)) continue;  // luckier, and no longer to be read
        if (tried_.contains(fingerprint) || !batch.insert(fingerprint).second || !CheckScenario(candidate).empty()) continue;
        candidates.push_back(std::move(candidate));
        edit_of.push_back(next - 1);
      }
      if (candidates.empty()) return;
      const std::optional<size_t> first = judge_.First(candidates);
      if (judge_.Interrupted()) return;
      const size_t tried = first.has_value() ? *first + 1 : candidates.size();
      Spend(tried);
      // What comes before the first is no candidate ever again: the same scenario always runs the same way.
      for (size_t i = 0; i < tried; ++i) tried_.insert(Fingerprint(candidates[i]));
      if (first.has_value()) {
        next = edit_of[*first] + 1;
        Take(std::move(candidates[*first]), rise);
      }
      listener_.OnProgress(best_, progress_);
    }
  }

  static bool IsFew(const Scenario& scenario) {
    const ScenarioSize size = SizeOf(scenario);
    return size.operations <= kSmallOperations && size.fault_lines <= kSmallFaultLines;
  }
  bool IsSmall(const Scenario& scenario) const { return strict_ || IsFew(scenario); }

  // Takes a failing candidate, unless it fails under too few other seeds.
  void Take(Scenario candidate, bool rise) {
    if (IsSmall(candidate) || rise) {
      const uint32_t before = Others();
      const uint32_t least = rise ? before + 1 : IsSmall(best_) ? before : std::min(before, 1u);
      const uint32_t after = Count(candidate);
      if (judge_.Interrupted() || after < std::min(least, kOtherSeedsWanted)) return;
      progress_.others = after;
    } else {
      progress_.others.reset();
    }
    best_ = std::move(candidate);
    ++progress_.changes;
    ++CostOfPass().changes;
    listener_.OnBetter(best_, progress_);
  }

  // Those of the best, counted when first asked for.
  uint32_t Others() {
    if (!progress_.others.has_value()) progress_.others = Count(best_);
    return *progress_.others;
  }

  uint32_t Count(const Scenario& scenario) {
    const OtherSeeds others = judge_.Others(scenario, kOtherSeedsWanted);
    Spend(others.runs);
    return others.failing;
  }

  void Spend(uint64_t runs) {
    progress_.runs += runs;
    CostOfPass().runs += runs;
  }

  ShrinkPassCost& CostOfPass() {
    const auto found = std::ranges::find(costs_, progress_.pass, &ShrinkPassCost::name);
    return found != costs_.end() ? *found : costs_.emplace_back(ShrinkPassCost{.name = progress_.pass});
  }

  const ShrinkPasses& passes_;
  const ShrinkOptions& options_;
  ShrinkJudge& judge_;
  ShrinkListener& listener_;
  Scenario best_;
  bool strict_ = false;  // nothing counts as large any more
  std::vector<ShrinkPassCost> costs_;
  ShrinkProgress progress_;
  std::set<uint64_t> tried_;  // fingerprints of candidates that need no run
};

}  // namespace

ShrinkResult Shrink(const Scenario& from, const ShrinkPasses& passes, const ShrinkOptions& options, ShrinkJudge& judge,
                    ShrinkListener& listener) {
  return Shrinking(from, passes, options, judge, listener).Go();
}

}  // namespace detcd::scenario
