#include "scenarios/event_stream.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "scenarios/runner.h"
#include "scenarios/sweep_totals.h"

namespace detcd::scenario {
namespace {

constexpr size_t kLineBytesTold = 200;  // of a line that is wrong

void PrintLine(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::printf("%s\n", line.c_str());
}

// A line, taken apart from its front.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  std::string_view Word() {
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(word.size() + 1, rest_.size()));
    return word;
  }
  uint64_t Number(int base = 10) {
    const std::string_view word = Word();
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
    good_ = good_ && error == std::errc() && end == word.data() + word.size();
    return number;
  }
  uint64_t Digest() { return Number(16); }
  std::string Rest() { return std::string(rest_); }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

bool AddLine(std::string_view text, EventStream& stream) {
  Line line(text);
  const std::string_view kind = line.Word();
  if (kind == "at") {
    const uint64_t number = line.Number();
    stream.checkpoints.push_back({.number = number, .digest = line.Digest()});
  } else if (kind == "event") {
    ToldEvent event;
    event.number = line.Number();
    event.cause = line.Number();
    event.digest = line.Digest();
    event.text = line.Rest();
    stream.events.push_back(std::move(event));
  } else if (kind == "log") {
    if (stream.events.empty()) return false;
    stream.events.back().logs.push_back(line.Rest());
  } else if (kind == "end") {
    StreamEnd end;
    end.at.number = line.Number();
    end.at.digest = line.Digest();
    end.text = line.Rest();
    stream.end = std::move(end);
  } else {
    return false;
  }
  return line.good();
}

}  // namespace

EventTeller::EventTeller(const EventRequest& request) : request_(request) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

void EventTeller::OnEvent(const sim::EventRecord& record) {
  current_ = record.number;
  if ((request_.every != 0 && current_ % request_.every == 0) || current_ + 1 == request_.first) {
    PrintLine(absl::StrFormat("at %d %016x", current_, record.digest));
  }
  if (IsAskedFor()) {
    PrintLine(absl::StrFormat("event %d %d %016x %s", current_, record.event.cause, record.digest,
                              FormatEventRecord(record)));
  }
}

void EventTeller::OnLog(std::string_view line) {
  if (IsAskedFor()) PrintLine("log " + std::string(line));
}

void EventTeller::OnEnd(const Checkpoint& at, std::string_view text) {
  PrintLine(absl::StrFormat("end %d %016x %s", at.number, at.digest, std::string(text)));
}

void PrintEvents(const Scenario& scenario, const EventRequest& request) {
  EventTeller teller(request);
  RunOptions options;
  options.event = [&teller](const sim::EventRecord& record) { teller.OnEvent(record); };
  if (request.first != 0) {
    options.stop_at_event = request.last + 1;
    options.trace = [&teller](std::string_view line) { teller.OnLog(line); };
  }
  const RunResult result = RunScenario(scenario, options);
  if (result.verdict == Verdict::kFine && !result.story.empty()) return;  // stopped
  std::string verdict(VerdictName(result.verdict));
  if (result.violation.has_value()) verdict += ": " + result.violation->signature;
  teller.OnEnd({.number = result.events, .digest = result.digest}, verdict);
}

std::optional<EventStream> ParseEventStream(std::string_view text, std::string& error) {
  EventStream stream;
  for (uint64_t number = 1;; ++number) {
    const size_t size = text.find('\n');
    if (size == std::string_view::npos) return stream;
    if (!AddLine(text.substr(0, size), stream)) {
      const std::string line(text.substr(0, std::min(size, kLineBytesTold)));
      error = absl::StrFormat("line %d is not of an event stream: %s", number, line);
      return std::nullopt;
    }
    text.remove_prefix(size + 1);
  }
}

}  // namespace detcd::scenario
