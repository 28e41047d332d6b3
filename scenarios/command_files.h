// What the commands of detcd-sim share: files they read and write, runs as reports, words for a shell.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "scenarios/runner.h"
#include "scenarios/scenario.pb.h"
#include "scenarios/sweep.h"
#include "scenarios/swarm.h"

namespace detcd::scenario {

// Throws UsageError, with the place, for what cannot be read, parsed, or run.
Scenario ReadScenario(const std::string& path);

// A file that is written whole or complained about: both throw UsageError.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), file_); }
  void Close();

 private:
  std::string path_;
  std::FILE* file_;
};

// `word` as a shell reads it.
std::string Quoted(const std::string& word);
std::string ReplayOfSeed(const std::string& program, uint64_t seed, FidelityChoice fidelity, ProfileChoice profile);

// That this process may use.
uint32_t Processors();

SeedReport RunOne(const Scenario& scenario, const RunOptions& options);

// The last report of a sweep: of one seed, the only one.
class KeepLast final : public SweepListener {
 public:
  void OnSeed(const SeedReport& report) override { report_ = report; }
  void OnProgress(const SweepProgress&) override {}
  const SeedReport& report() const { return report_; }

 private:
  SeedReport report_;
};

}  // namespace detcd::scenario
