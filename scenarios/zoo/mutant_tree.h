// A copy of the working tree aside, in which mutants are built one after the other: only what differs from the last one
// is written, so only that is compiled.
#pragma once

#include <string>
#include <vector>

#include "scenarios/zoo/mutant.h"

namespace detcd::scenario {

// What a program said (both outputs) and its exit code; -1: a signal ended it.
struct Ended {
  int code = 0;
  std::string text;
};
Ended RunProgram(const std::vector<std::string>& words, const std::string& folder);

// What is wrong with a mutant, in one line.
struct MutantTrouble {
  std::string text;
};

class MutantTree {
 public:
  // The tree whose root is `root`; its copy is `root`/build/zoo. Throws UsageError where that is no tree of detcd.
  explicit MutantTree(std::string root);

  // The fingerprint of all that a measurement depends on but the patch: every file except documents and the zoo itself.
  const std::string& key() const { return key_; }
  std::string Content(const std::string& file) const;
  std::vector<std::string> Patches() const;  // ascending, those of instruments last

  // Makes the copy what the tree is, with the mutant's patch applied (nullptr: none). Throws MutantTrouble where it does not apply.
  void Apply(const Mutant* mutant);
  // Builds a target of the copy, preset sim. Throws MutantTrouble.
  void Build(const std::string& target);
  std::string Program(const std::string& name) const { return copy_ + "/build/sim/bin/" + name; }
  const std::string& copy() const { return copy_; }

 private:
  std::string root_;
  std::string copy_;
  std::string key_;
  std::vector<std::string> files_;  // ascending
};

}  // namespace detcd::scenario
