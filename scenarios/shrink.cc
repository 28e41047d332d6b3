#include "scenarios/shrink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/digest.h"
#include "scenarios/runner.h"

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
    const OtherSeeds others = judge_.Others(best_, kOtherSeedsWanted);
    progress_.runs += others.runs;
    progress_.others = others.failing;
    bool changed = true;
    while (changed && MayGoOn()) {
      changed = Round(passes_.reductions, 0);
      if (!changed && progress_.others < kOtherSeedsWanted) changed = Round(passes_.hardenings, 1);
    }
    return {.best = best_, .progress = progress_, .minimal = !changed && MayGoOn()};
  }

 private:
  bool MayGoOn() const { return progress_.runs < options_.runs_max && !judge_.Interrupted(); }

  // Whether anything was taken. `more`: how many other seeds a candidate must gain.
  bool Round(const std::vector<ShrinkPass>& passes, uint32_t more) {
    const uint64_t before = progress_.changes;
    for (const ShrinkPass& pass : passes) {
      progress_.pass = pass.name;
      for (uint32_t level = 0; level < pass.levels && MayGoOn(); ++level) Level(pass.edits(best_, level), more);
    }
    return progress_.changes != before;
  }

  void Level(const std::vector<ShrinkEdit>& edits, uint32_t more) {
    size_t next = 0;
    while (next < edits.size() && MayGoOn()) {
      std::vector<Scenario> candidates;
      std::vector<size_t> edit_of;
      std::set<uint64_t> batch;
      const uint64_t most = std::min<uint64_t>(options_.batch, options_.runs_max - progress_.runs);
      while (next < edits.size() && candidates.size() < most) {
        Scenario candidate = best_;
        edits[next++](candidate);
        const uint64_t fingerprint = Fingerprint(candidate);
        if (tried_.contains(fingerprint) || !batch.insert(fingerprint).second || !CheckScenario(candidate).empty()) continue;
        candidates.push_back(std::move(candidate));
        edit_of.push_back(next - 1);
      }
      if (candidates.empty()) return;
      const std::optional<size_t> first = judge_.First(candidates);
      if (judge_.Interrupted()) return;
      const size_t tried = first.has_value() ? *first + 1 : candidates.size();
      progress_.runs += tried;
      // What comes before the first is no candidate ever again: the same scenario always runs the same way.
      for (size_t i = 0; i < tried; ++i) tried_.insert(Fingerprint(candidates[i]));
      if (first.has_value()) {
        next = edit_of[*first] + 1;
        Take(std::move(candidates[*first]), more);
      }
      listener_.OnProgress(best_, progress_);
    }
  }

  // Takes a failing candidate, unless it fails under fewer other seeds than it must.
  void Take(Scenario candidate, uint32_t more) {
    const OtherSeeds others = judge_.Others(candidate, kOtherSeedsWanted);
    progress_.runs += others.runs;
    if (judge_.Interrupted() || others.failing < std::min(progress_.others + more, kOtherSeedsWanted)) return;
    progress_.others = others.failing;
    best_ = std::move(candidate);
    ++progress_.changes;
    listener_.OnBetter(best_, progress_);
  }

  const ShrinkPasses& passes_;
  const ShrinkOptions& options_;
  ShrinkJudge& judge_;
  ShrinkListener& listener_;
  Scenario best_;
  ShrinkProgress progress_;
  std::set<uint64_t> tried_;  // fingerprints of candidates that need no run
};

}  // namespace

ShrinkResult Shrink(const Scenario& from, const ShrinkPasses& passes, const ShrinkOptions& options, ShrinkJudge& judge,
                    ShrinkListener& listener) {
  return Shrinking(from, passes, options, judge, listener).Go();
}

}  // namespace detcd::scenario
