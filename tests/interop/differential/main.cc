// detcd-differential: the same sequences of API calls to an etcd and to a detcd, answers compared. `run` beside this
// file starts it. Servers come through standard input and output: a line `@fresh` asks for two on new data directories,
// a line `ETCD_PORT DETCD_PORT` answers. The last line is `@summary` with one JSON object.
//
// Ends with 0 when nothing differed, 1 when something did, 2 when there were no servers, 64 for a bad command line.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "realnet/real_host.h"
#include "tests/interop/differential/accepted.h"
#include "tests/interop/differential/comparison.h"
#include "tests/interop/differential/story.h"
#include "tests/support/api_sequence.h"

namespace detcd::differential {
namespace {

struct Arguments {
  uint64_t first = 1;
  uint64_t count = 1;
  uint64_t per_folder = 100;
  uint64_t differences_max = 20;
  std::string accepted;
};

class Driver {
 public:
  Driver(const Arguments& arguments, AcceptedDifferences accepted)
      : arguments_(arguments),
        accepted_(std::move(accepted)),
        host_({.data_folder = ".", .log_level = LogLevel::kError, .on_signal = {}}) {}

  int Run() {
    const uint64_t end = arguments_.first + arguments_.count;
    for (uint64_t seed = arguments_.first; seed < end && differences_ < arguments_.differences_max; ++seed) {
      if (comparison_ == nullptr || seed >= folder_first_ + arguments_.per_folder) {
        if (!Fresh()) return 2;
        folder_first_ = seed;
      }
      const std::vector<testing::ApiCall> calls = testing::DrawApiSequence(seed);
      ++sequences_;
      std::optional<Difference> difference = comparison_->Run(calls, accepted_);
      calls_ += difference.has_value() ? difference->index + 1 : calls.size();
      if (!difference.has_value()) continue;
      ++differences_;
      if (!Explain(seed, calls, *difference)) return 2;
      comparison_.reset();  // they may hold different things by now
    }
    Summarise();
    return differences_ == 0 ? 0 : 1;
  }

 private:
  // Two new servers. False: there are none.
  bool Fresh() {
    comparison_.reset();
    std::cout << "@fresh" << std::endl;
    int etcd_port = 0;
    int detcd_port = 0;
    if (!(std::cin >> etcd_port >> detcd_port)) return false;
    comparison_ =
        std::make_unique<Comparison>(host_, static_cast<uint16_t>(etcd_port), static_cast<uint16_t>(detcd_port));
    return true;
  }

  // On the servers that are there, if they still hold the same, else on new ones: there a difference at an earlier call
  // is as good. `calls` begins with the wipe.
  std::optional<Difference> Replay(const std::vector<testing::ApiCall>& calls, bool& servers) {
    for (const bool fresh : {false, true}) {
      if ((fresh || comparison_ == nullptr) && !Fresh()) {
        servers = false;
        return std::nullopt;
      }
      std::optional<Difference> difference = comparison_->Run(calls, accepted_);
      if (!difference.has_value()) return std::nullopt;
      const bool at_end = difference->index + 1 == calls.size();
      if (difference->etcd.lost || difference->detcd.lost) comparison_.reset();
      if (at_end || fresh) return difference;
    }
    return std::nullopt;
  }

  bool Explain(uint64_t seed, std::vector<testing::ApiCall> calls, const Difference& found) {
    const size_t before = found.index + 1;
    calls.resize(before);
    bool servers = true;
    const std::optional<Story> story =
        Shrink(calls, [&](const std::vector<testing::ApiCall>& smaller) -> std::optional<Difference> {
          if (!servers) return std::nullopt;
          return Replay(smaller, servers);
        });
    if (!servers) return false;
    if (story.has_value()) {
      std::cout << absl::StrFormat("DIFFERENCE %d: sequence %d, call %d, in %d calls\n%s", differences_, seed, before,
                                   story->calls.size(), Tell(story->calls, story->difference));
    } else {
      std::cout << absl::StrFormat(
          "DIFFERENCE %d: sequence %d, call %d; not seen again when it was replayed alone, so try "
          "--first %d --count %d\n%s",
          differences_, seed, before, folder_first_, seed - folder_first_ + 1, Tell(calls, found));
    }
    std::cout << std::flush;
    return true;
  }

  void Summarise() {
    std::string entries;
    for (const AcceptedDifferences::Entry& entry : accepted_.entries()) {
      entries += absl::StrFormat("%s\"%s\":%d", entries.empty() ? "" : ",", entry.name, entry.matched);
    }
    std::cout << absl::StrFormat("@summary {\"sequences\":%d,\"calls\":%d,\"differences\":%d,\"accepted\":{%s}}\n",
                                 sequences_, calls_, differences_, entries);
  }

  const Arguments arguments_;
  AcceptedDifferences accepted_;
  realnet::RealHost host_;
  std::unique_ptr<Comparison> comparison_;
  uint64_t folder_first_ = 0;
  uint64_t sequences_ = 0;
  uint64_t calls_ = 0;
  uint64_t differences_ = 0;
};

int Main(int argc, char** argv) {
  CLI::App app("the same sequences of API calls to an etcd and a detcd, answers compared");
  Arguments arguments;
  app.add_option("--first", arguments.first, "seed of the first sequence")->capture_default_str();
  app.add_option("--count", arguments.count, "how many sequences")->capture_default_str();
  app.add_option("--per-folder", arguments.per_folder, "sequences on one pair of servers")->check(CLI::PositiveNumber);
  app.add_option("--differences-max", arguments.differences_max, "stop after so many")->check(CLI::PositiveNumber);
  app.add_option("--accepted", arguments.accepted, "the table of differences that are meant")->required();
  bool draw = false;
  app.add_flag("--print", draw, "print the sequences, send nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  if (draw) {
    for (uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
      std::cout << "sequence " << seed << "\n";
      for (const testing::ApiCall& call : testing::DrawApiSequence(seed))
        std::cout << "  " << testing::Describe(call) << "\n";
    }
    return 0;
  }
  AcceptedDifferences accepted;
  if (const std::string trouble = accepted.Load(arguments.accepted); !trouble.empty()) {
    std::cerr << "detcd-differential: " << trouble << "\n";
    return 64;
  }
  return Driver(arguments, std::move(accepted)).Run();
}

}  // namespace
}  // namespace detcd::differential

int main(int argc, char** argv) { return detcd::differential::Main(argc, argv); }
