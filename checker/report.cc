#include "checker/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/requests.h"

namespace detcd::checker {
namespace {

constexpr size_t kColumn = 7;  // width of one step of the order

std::string Result(const Operation& operation) {
  switch (operation.outcome) {
    case Outcome::kPending: return "no answer yet";
    case Outcome::kUnknown: return "unknown";
    case Outcome::kRefused: return "refused: " + operation.answer.error;
    case Outcome::kAnswered: break;
  }
  if (!operation.answer.error.empty()) return operation.answer.error;
  return absl::StrFormat("revision %d", operation.answer.header_revision);
}

bool Ended(const Operation& operation) {
  return operation.outcome == Outcome::kAnswered || operation.outcome == Outcome::kRefused;
}

}  // namespace

std::string Tell(const Violation& violation, std::span<const Operation> history) {
  int64_t nanos = violation.moment.true_time.nanos;
  std::string text = absl::StrFormat("%s\n%s\nat event %d, %d.%03d ms\n", violation.signature, violation.sentence,
                                     violation.moment.event, nanos / 1'000'000, nanos / 1'000 % 1'000);
  std::vector<const Operation*> concerned;
  std::vector<uint64_t> events;
  bool open = false;
  for (const Operation& operation : history) {
    if (std::ranges::count(violation.operations, operation.id) == 0) continue;
    concerned.push_back(&operation);
    events.push_back(operation.call.event);
    if (Ended(operation)) events.push_back(operation.end.event);
    open = open || !Ended(operation);
  }
  std::ranges::sort(events);
  events.erase(std::unique(events.begin(), events.end()), events.end());
  std::ranges::sort(concerned, {}, [](const Operation* operation) { return operation->call.event; });
  auto column = [&](uint64_t event) {
    return kColumn * static_cast<size_t>(std::ranges::lower_bound(events, event) - events.begin());
  };
  size_t width = kColumn * (events.size() - (open ? 0 : std::min<size_t>(events.size(), 1)));
  for (const Operation* operation : concerned) {
    size_t from = column(operation->call.event);
    size_t to = Ended(*operation) ? column(operation->end.event) : width;
    std::string lane(width + 1, ' ');
    for (size_t i = from; i < to; ++i) lane[i] = '-';
    lane[from] = '|';
    lane[to] = Ended(*operation) ? '|' : '>';
    text += absl::StrFormat("  %s  %s: %s\n", lane, Describe(*operation), Result(*operation));
  }
  return text;
}

}  // namespace detcd::checker
