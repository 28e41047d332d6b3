#include "scenarios/zoo/zoo.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>

#include "absl/strings/str_format.h"
#include "core/base/digest.h"
#include "scenarios/commands.h"
#include "scenarios/json_files.h"
#include "scenarios/sweep.pb.h"
#include "scenarios/swarm.h"
#include "scenarios/zoo/mutant_tree.h"
#include "scenarios/zoo/zoo.pb.h"
#include "scenarios/zoo/zoo_table.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kZooSchemaVersion = 3;
constexpr char kDeadFault[] = "dead fault";
constexpr char kFailedMark[] = "[  FAILED  ] ";

std::string LinesWith(const std::string& text, std::initializer_list<std::string_view> starts) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view start : starts) {
      if (line.compare(0, start.size(), start) == 0) found += line + "\n";
    }
  }
  return found;
}

class Zoo {
 public:
  explicit Zoo(const ZooCommand& command) : command_(command), tree_(std::filesystem::current_path().string()) {
    if (!command.json_file.empty() && std::filesystem::exists(command.json_file) && !ReadJson(command.json_file, known_)) {
      throw UsageError{command.json_file + ": is no report of zoo"};
    }
    report_.set_schema_version(kZooSchemaVersion);
    report_.set_swarm_version(kSwarmVersion);
  }

  int Run() {
    uint64_t measured = 0;
    for (const std::string& file : tree_.Patches()) {
      const size_t name = file.rfind('/') + 1;
      const std::string id = file.substr(name, file.rfind('.') - name);
      if (!command_.only.empty() && id != command_.only) {
        if (const MutantResult* known = Known(id)) *report_.add_mutants() = *known;
        continue;
      }
      ++measured;
      MutantResult& result = *report_.add_mutants();
      Measure(id, file, result);
      if (!IsGood(result)) ++wrong_;
      std::printf("%s\n", ResultLine(result).c_str());
      std::fflush(stdout);
      if (!command_.json_file.empty()) Save();
    }
    if (measured == 0) throw UsageError{"zoo: no mutant is called " + command_.only};
    if (command_.only.empty()) std::printf("\n%s", ZooTable(report_).c_str());
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  const MutantResult* Known(const std::string& id) const {
    for (const MutantResult& result : known_.mutants()) {
      if (result.id() == id) return &result;
    }
    return nullptr;
  }

  // What is not measured yet keeps its former result.
  void Save() const {
    ZooReport whole = report_;
    for (const MutantResult& result : known_.mutants()) {
      const bool fresh = std::any_of(whole.mutants().begin(), whole.mutants().end(),
                                     [&](const MutantResult& other) { return other.id() == result.id(); });
      if (!fresh) *whole.add_mutants() = result;
    }
    WriteJson(command_.json_file, whole);
  }

  void Measure(const std::string& id, const std::string& file, MutantResult& result) {
    const std::string text = tree_.Content(file);
    const std::string key = absl::StrFormat("%016x-%s-%d-%d", DigestBytes(text), tree_.key(), kSwarmVersion, kZooSchemaVersion);
    const MutantResult* known = Known(id);
    if (known != nullptr && known->key() == key && known->outcome() != "wrong" &&
        (known->kill_count() >= kKillsMax || known->seeds_asked() >= command_.seeds)) {
      result = *known;
      return;
    }
    result.set_id(id);
    result.set_key(key);
    result.set_seeds_asked(command_.seeds);
    try {
      std::string trouble;
      const std::optional<Mutant> mutant = ParseMutant(file, text, trouble);
      if (!mutant) throw MutantTrouble{trouble};
      result.set_source(mutant->source);
      result.set_mechanism(mutant->mechanism);
      if (mutant->killed_by.empty()) {
        MeasureBySweep(*mutant, result);
      } else {
        MeasureByTest(*mutant, result);
      }
    } catch (const MutantTrouble& trouble) {
      result.set_outcome("wrong");
      result.set_trouble(trouble.text);
    }
  }

  // A test that also fails without the mutant kills nothing.
  void MeasureByTest(const Mutant& mutant, MutantResult& result) {
    const std::vector<std::string> test = {"ctest", "--test-dir", "build/sim",   "--timeout",
                                           "600",   "-R",         "^" + mutant.killed_by + "$", "--output-on-failure"};
    if (sound_.insert({mutant.killed_by, false}).second) {
      tree_.Apply(nullptr);
      tree_.Build(mutant.killed_by);
      const Ended whole = RunProgram(test, tree_.copy());
      sound_[mutant.killed_by] = whole.code == 0 && whole.text.find("No tests were found") == std::string::npos;
    }
    if (!sound_[mutant.killed_by]) throw MutantTrouble{mutant.killed_by + " fails, or is not there, without the mutant"};
    tree_.Apply(&mutant);
    tree_.Build(mutant.killed_by);
    const Ended ended = RunProgram(test, tree_.copy());
    result.set_outcome(ended.code == 0 ? "survived" : "killed");
    if (ended.code == 0) return;
    Kill& kill = *result.add_kills();
    const size_t mark = ended.text.find(kFailedMark);
    std::string name = mark == std::string::npos ? "" : ended.text.substr(mark + sizeof(kFailedMark) - 1);
    name = name.substr(0, name.find_first_of(" ,\n"));
    kill.set_judge(mutant.killed_by + (name.empty() ? "" : ": " + name));
    kill.set_count(1);
    result.set_kill_count(1);
  }

  void MeasureBySweep(const Mutant& mutant, MutantResult& result) {
    tree_.Apply(&mutant);
    tree_.Build("detcd-sim");
    RunScenarios(mutant, result);
    if (mutant.by_scenario) {
      result.set_outcome("killed");
      return;
    }
    const std::string simulator = tree_.Program("detcd-sim");
    const std::string json = std::filesystem::current_path().string() + "/build/zoo/sweep.json";
    std::filesystem::remove(json);
    const uint64_t seeds = mutant.OfInstrument() ? std::min(command_.seeds, kInstrumentSeeds) : command_.seeds;
    RunProgram({simulator, "sweep", "--seeds", absl::StrFormat("1..%d", seeds), "--failures-max", std::to_string(kKillsMax),
                "--jobs", std::to_string(command_.jobs), "--cpu-for", absl::StrFormat("%ds", kCpuSecondsMax), "--json", json},
               tree_.copy());
    SweepReport sweep;
    if (!ReadJson(json, sweep)) throw MutantTrouble{"its sweep left no report"};
    result.set_seeds(sweep.totals().seeds());
    result.set_cpu_seconds(sweep.cost().cpu_seconds());
    for (const Failure& failure : sweep.failures()) AddKill(failure.property(), failure.seed(), failure.signature(), result);
    for (const Fault& fault : sweep.faults()) {
      if (fault.dead()) AddKill(kDeadFault, 0, "dead fault: " + fault.kind(), result);
    }
    Judge(mutant, result);
    if (sweep.failures_size() == 0) return;
    Replay(sweep.failures(0));
    if (!mutant.OfInstrument()) ShrinkFirst(sweep.failures(0), result);
  }

  // Each scenario of its header must fail on it; that they hold without it is a test of theirs.
  void RunScenarios(const Mutant& mutant, MutantResult& result) const {
    for (const std::string& name : mutant.scenarios) {
      const std::string file = std::filesystem::current_path().string() + "/scenarios/" + name + ".scenario";
      const Ended ended = RunProgram({tree_.Program("detcd-sim"), "run", file}, tree_.copy());
      const std::string said = LinesWith(ended.text, {"verdict: "});
      if (ended.code == 0) throw MutantTrouble{name + " holds on it"};
      if (said.empty()) throw MutantTrouble{absl::StrFormat("%s cannot be run: exit code %d", name, ended.code)};
      const size_t open = said.find('(');
      const size_t close = said.find(')');
      const bool named = open != std::string::npos && close != std::string::npos;
      ScenarioKill& kill = *result.add_scenario_kills();
      kill.set_scenario(name);
      kill.set_judge(named ? said.substr(open + 1, close - open - 1) : "crash");
      CheckListed(mutant, kill.judge(), name);
    }
  }

  static void CheckListed(const Mutant& mutant, const std::string& judge, const std::string& where) {
    if (std::find(mutant.expected.begin(), mutant.expected.end(), judge) != mutant.expected.end()) return;
    throw MutantTrouble{absl::StrFormat("its header does not list `%s` (%s)", judge, where)};
  }

  // By the mutant's own program, from the start: what an earlier zoo made would make it look cheap.
  void ShrinkFirst(const Failure& failure, MutantResult& result) {
    const std::string folder = std::filesystem::current_path().string() + "/build/zoo/shrunk";
    std::filesystem::create_directories(folder);
    const std::string scenario = folder + "/" + result.id() + ".scenario";
    const std::string json = folder + "/" + result.id() + ".json";
    std::filesystem::remove(scenario);
    std::filesystem::remove(json);
    const Ended ended = RunProgram({tree_.Program("detcd-sim"), "shrink", "--seed", std::to_string(failure.seed()), "--jobs",
                                    std::to_string(command_.jobs), "--out", scenario, "--json", json},
                                   tree_.copy());
    ShrinkReport shrunk;
    if (!ReadJson(json, shrunk)) {
      throw MutantTrouble{absl::StrFormat("seed %d was not shrunk: exit code %d", failure.seed(), ended.code)};
    }
    *result.mutable_shrunk() = shrunk;
    if (!shrunk.confirmed()) throw MutantTrouble{absl::StrFormat("what seed %d was shrunk to fails otherwise in further processes", failure.seed())};
  }

  static void AddKill(const std::string& judge, uint64_t seed, const std::string& signature, MutantResult& result) {
    result.set_kill_count(result.kill_count() + 1);
    for (Kill& kill : *result.mutable_kills()) {
      if (kill.judge() != judge) continue;
      kill.set_count(kill.count() + 1);
      return;
    }
    Kill& kill = *result.add_kills();
    kill.set_judge(judge);
    kill.set_count(1);
    kill.set_first_seed(seed);
    kill.set_signature(signature);
  }

  void Judge(const Mutant& mutant, MutantResult& result) const {
    const uint64_t kills = result.kill_count();
    if (kills == 0) {
      result.set_outcome(mutant.equivalent.empty() ? "survived" : "equivalent");
    } else {
      if (!mutant.equivalent.empty()) throw MutantTrouble{"its header shows it to be equivalent, yet it was killed"};
      result.set_outcome("killed");
      result.set_cpu_to_kill(result.cpu_seconds() / static_cast<double>(kills));
    }
    const Interval interval = WilsonInterval(kills, result.seeds());
    if (result.seeds() > 0) result.set_probability(static_cast<double>(kills) / static_cast<double>(result.seeds()));
    result.set_probability_low(interval.low);
    result.set_probability_high(interval.high);
    for (const Kill& kill : result.kills()) {
      CheckListed(mutant, kill.judge(), absl::StrFormat("seed %d: %s", kill.first_seed(), kill.signature()));
    }
  }

  // The printed command finds the same, twice. A crash or a hang has no digest.
  void Replay(const Failure& failure) const {
    const std::vector<std::string> command = {tree_.Program("detcd-sim"), "run", "--seed", std::to_string(failure.seed())};
    std::string first;
    for (int round = 0; round < 2; ++round) {
      const Ended ended = RunProgram(command, tree_.copy());
      const std::string said = LinesWith(ended.text, {"verdict: ", "digest: "});
      const bool same_digest = failure.digest() == "none" || said.find("digest: " + failure.digest() + "\n") != std::string::npos;
      if (ended.code == 0 || !same_digest || (round == 1 && said != first)) {
        throw MutantTrouble{absl::StrFormat("the replay of seed %d does not repeat it: exit code %d", failure.seed(), ended.code)};
      }
      first = said;
    }
  }

  const ZooCommand& command_;
  MutantTree tree_;
  ZooReport known_;
  ZooReport report_;
  std::map<std::string, bool> sound_;  // tests, and whether they pass without a mutant
  uint64_t wrong_ = 0;
};

}  // namespace

int RunZoo(const ZooCommand& command) {
  if (command.table_file.empty()) return Zoo(command).Run();
  ZooReport report;
  if (!ReadJson(command.table_file, report)) throw UsageError{command.table_file + ": is no report of zoo"};
  std::printf("%s", ZooTable(report).c_str());
  return 0;
}

}  // namespace detcd::scenario
