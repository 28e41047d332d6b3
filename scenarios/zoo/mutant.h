// A mutant: a patch file whose header says what it is and who must find it. README.md describes the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace detcd::scenario {

inline constexpr uint64_t kMutantChangedLinesMax = 10;

struct Mutant {
  std::string id;         // the file's name without `.patch`
  std::string file;       // path from the root of the tree
  std::string source;
  std::string mechanism;
  std::string trigger;
  std::vector<std::string> expected;  // judges that may kill it
  std::string killed_by;  // the test target that must fail; empty: a sweep, or by_scenario
  bool by_scenario = false;  // the scenarios are all that must find it
  std::vector<std::string> scenarios;  // that it must break, as `election/x`
  std::string equivalent; // why nothing can tell it from the core; empty: it is to be killed
  std::vector<std::string> touched;   // files that it changes

  bool OfInstrument() const;  // a mutant of the simulator or of a judge
};

// The mutant that `text`, the content of `file`, describes. nullopt: `trouble` says what is wrong with it.
std::optional<Mutant> ParseMutant(const std::string& file, std::string_view text, std::string& trouble);

// Wilson's score interval around `hits` of `tries`, at 95%.
struct Interval {
  double low = 0;
  double high = 1;
};
Interval WilsonInterval(uint64_t hits, uint64_t tries);

}  // namespace detcd::scenario
