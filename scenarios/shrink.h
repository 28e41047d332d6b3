// The engine that makes a failing scenario smaller while it fails in the same way: delta debugging (Zeller & Hildebrandt
// 2002) generalised from lists to any reduction. It knows no world: a judge says which candidate still fails.
//
// Deterministic: the result is a function of the scenario, the passes, the bound and the judge's answers. Candidates are
// handed over in batches so that a judge may run several at once; what counts is the first in their order, and only the
// runs up to it, so that neither the size of a batch nor the number of processors changes the result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

// Makes a scenario smaller in place. It may find nothing to do, or make something that cannot be run: both are skipped.
// A reduction must never undo what another does, or shrinking would not end before its bound.
using ShrinkEdit = std::function<void(Scenario&)>;

// Reductions of one kind, from coarse to fine.
struct ShrinkPass {
  std::string name;
  uint32_t levels = 1;
  // The edits of one level, in the order to be tried. When one succeeds, those after it are tried on its result: they
  // name what they take away by ids, not by places.
  std::function<std::vector<ShrinkEdit>(const Scenario& scenario, uint32_t level)> edits;
};

struct OtherSeeds {
  uint32_t failing = 0;
  uint32_t runs = 0;     // what it took to know
};

class ShrinkJudge {
 public:
  // The first of `candidates`, in their order, that fails as the original does.
  virtual std::optional<size_t> First(const std::vector<Scenario>& candidates) = 0;
  // Under how many of kOtherSeeds other base seeds `candidate` fails as the original does; counts no further than `enough`.
  virtual OtherSeeds Others(const Scenario& candidate, uint32_t enough) = 0;
  // Whether to give up: the answers of the last call mean nothing.
  virtual bool Interrupted() = 0;

 protected:
  ~ShrinkJudge() = default;
};

inline constexpr uint32_t kOtherSeeds = 10;
// A scenario with more of either is large.
inline constexpr uint64_t kSmallOperations = 40;
inline constexpr uint64_t kSmallFaultLines = 10;
// A failure that hangs on every draw of its seed is no regression test: the result should fail under so many other seeds.
inline constexpr uint32_t kOtherSeedsWanted = 3;

struct ShrinkProgress {
  std::string pass;
  uint64_t runs = 0;
  uint64_t changes = 0;   // edits that were taken
  std::optional<uint32_t> others;  // of kOtherSeeds, counted up to kOtherSeedsWanted; absent: not counted
};

// What one pass took, in all its rounds.
struct ShrinkPassCost {
  std::string name;
  uint64_t runs = 0;
  uint64_t changes = 0;
};

class ShrinkListener {
 public:
  // `best` fails, and is smaller than the last, or fails under more other seeds.
  virtual void OnBetter(const Scenario& best, const ShrinkProgress& progress) = 0;
  // After each batch.
  virtual void OnProgress(const Scenario& best, const ShrinkProgress& progress) = 0;

 protected:
  ~ShrinkListener() = default;
};

struct ShrinkOptions {
  uint64_t runs_max = 5'000;
  uint32_t batch = 16;       // candidates handed to the judge at once
};

struct ShrinkResult {
  Scenario best;
  ShrinkProgress progress;
  std::vector<ShrinkPassCost> costs;  // in the order of their first runs
  bool minimal = false;      // no edit of any pass makes it smaller; false: the bound was reached, or it was interrupted
};

struct ShrinkPasses {
  std::vector<ShrinkPass> reductions;
  // Reductions that are dearer, for when none of those above is left.
  std::vector<ShrinkPass> second_chances;
  // What makes a failure less a matter of luck, though not smaller.
  std::vector<ShrinkPass> hardenings;
};

// Requires: `from` fails. A round goes through all reductions; rounds end when one changes nothing.
// While it is large, it gets smaller however much luck that takes: with all that happens in a large one it fails under
// many seeds, and keeping it so would keep it large. What makes it small must fail under one other seed, if any; from there
// on the number of other seeds may not fall below kOtherSeedsWanted, nor, while it is less, fall at all. Hardenings are taken
// when that number rises, and none that makes it large.
ShrinkResult Shrink(const Scenario& from, const ShrinkPasses& passes, const ShrinkOptions& options, ShrinkJudge& judge,
                    ShrinkListener& listener);

}  // namespace detcd::scenario
