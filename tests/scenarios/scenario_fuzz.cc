// Any bytes as a scenario: refused with words, or read back the same from its own text, and runnable for as long as the
// fuzzer has patience.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scenarios/runner.h"
#include "scenarios/scenario_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace detcd::scenario;
  constexpr uint64_t kEventsMax = 300;
  Scenario scenario;
  if (!ParseScenarioText(std::string(reinterpret_cast<const char*>(data), size), scenario).empty()) return 0;
  const std::string text = ScenarioText(scenario);
  Scenario again;
  if (!ParseScenarioText(text, again).empty() || ScenarioText(again) != text) std::abort();
  if (!CheckScenario(scenario).empty()) return 0;
  RunOptions options;
  options.stop_at_event = kEventsMax;
  RunScenario(scenario, options);
  return 0;
}
