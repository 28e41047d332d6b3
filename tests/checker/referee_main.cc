// checker_referee: judges of linearizability held against each other on random, corrupted histories.
//
//   checker_referee [--histories N] [--operations M] [--from SEED]
//
// Exit status 0: all agree, and each way to corrupt was seen to break something; 1: a mismatch, told with its history
// (`--from SEED --histories 1` repeats it); 64: usage.
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/checker/history_corruption.h"
#include "tests/checker/referee.h"

namespace detcd::checker {
namespace {

constexpr uint64_t kMismatchesTold = 5;
constexpr uint64_t kHistoriesForEachWay = 20'000;  // from this many on, every way must have bitten

struct Counts {
  uint64_t histories = 0;
  uint64_t refused_by_judge = 0;
  uint64_t illegal_answers = 0;
  uint64_t illegal_values = 0;
};

int Main(uint64_t from, uint64_t histories, size_t operations_max) {
  std::map<std::string, Counts> counts;
  for (std::string_view name : CorruptionNames()) counts[std::string(name)] = {};
  uint64_t mismatches = 0;
  uint64_t gave_up = 0;
  uint64_t by_request = 0;
  uint64_t steps = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = from; seed < from + histories; ++seed) {
    Comparison comparison = CompareJudges(seed, operations_max);
    Counts& way = counts[comparison.corruption];
    ++way.histories;
    way.refused_by_judge += comparison.judge_accepts ? 0 : 1;
    way.illegal_answers += comparison.answers_are_legal ? 0 : 1;
    way.illegal_values += comparison.values_are_legal ? 0 : 1;
    gave_up += comparison.oracle_gave_up ? 1 : 0;
    by_request += comparison.differs_by_request ? 1 : 0;
    steps += comparison.steps;
    if (comparison.mismatch.empty() || ++mismatches > kMismatchesTold) continue;
    std::printf("MISMATCH seed %llu, %s: %s\n%s\n", static_cast<unsigned long long>(seed), comparison.corruption.c_str(),
                comparison.mismatch.c_str(), Story(comparison.history).c_str());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%-34s %10s %10s %10s %10s\n", "illegal", "histories", "with log", "answers", "values");
  bool dull = false;
  for (const auto& [name, way] : counts) {
    std::printf("%-34s %10llu %10llu %10llu %10llu\n", name.c_str(), static_cast<unsigned long long>(way.histories),
                static_cast<unsigned long long>(way.refused_by_judge), static_cast<unsigned long long>(way.illegal_answers),
                static_cast<unsigned long long>(way.illegal_values));
    if (name == "nothing") {
      if (way.refused_by_judge > 0) {
        std::printf("a history as the specification made it was refused\n");
        dull = true;
      }
    } else if (histories >= kHistoriesForEachWay && way.refused_by_judge < 20) {
      std::printf("this way hardly breaks anything: %s\n", name.c_str());
      dull = true;
    }
  }
  std::printf("%llu histories of at most %zu operations in %.1f s (%.0f/s), %.1f search steps each; an oracle gave up %llu "
              "times; %llu faults only in a request of the log; %llu mismatches\n",
              static_cast<unsigned long long>(histories), operations_max, seconds,
              static_cast<double>(histories) / (seconds > 0 ? seconds : 1),
              static_cast<double>(steps) / static_cast<double>(histories), static_cast<unsigned long long>(gave_up),
              static_cast<unsigned long long>(by_request),
              static_cast<unsigned long long>(mismatches));
  return mismatches > 0 || dull ? 1 : 0;
}

}  // namespace
}  // namespace detcd::checker

int main(int argc, char** argv) {
  uint64_t from = 0;
  uint64_t histories = 20'000;
  size_t operations_max = 8;
  CLI::App app("Holds the judges of linearizability against each other on random, corrupted histories.");
  app.add_option("--histories", histories, "How many")->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  app.add_option("--operations", operations_max, "At most this many in each")->check(CLI::Range(size_t{1}, size_t{16}));
  app.add_option("--from", from, "The first seed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 64;
  }
  return detcd::checker::Main(from, histories, operations_max);
}
