#include "scenarios/story.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "absl/strings/str_format.h"

namespace detcd::scenario {
namespace {

constexpr int64_t kWindow = 2'000'000'000;  // before the violation, when it names no operation
constexpr size_t kCellWidthMax = 34;

std::string TimeText(int64_t nanos) { return absl::StrFormat("%d.%03d", nanos / 1'000'000, nanos / 1'000 % 1'000); }

bool IsFault(MarkKind kind) { return kind == MarkKind::kFaultBegins || kind == MarkKind::kFaultEnds; }
bool IsOperation(MarkKind kind) { return kind == MarkKind::kCall || kind == MarkKind::kReturn; }

bool IsConcerned(const checker::Violation& violation, const Mark& mark) {
  return IsOperation(mark.kind) && std::ranges::count(violation.operations, mark.subject) > 0;
}

// Whether `mark` happened before the violation was seen, or in that event.
bool IsPast(const checker::Violation& violation, const Mark& mark) { return mark.event <= violation.moment.event; }

// The faults in force at any time between `from` and the violation, by their place in the scenario.
std::set<uint64_t> FaultsSince(const RunRecord& record, const checker::Violation& violation, int64_t from) {
  std::set<uint64_t> faults;
  for (const Mark& mark : record.marks) {
    if (!IsPast(violation, mark)) break;
    if (mark.kind == MarkKind::kFaultBegins) faults.insert(mark.subject);
    if (mark.kind == MarkKind::kFaultEnds && mark.nanos < from) faults.erase(mark.subject);
  }
  return faults;
}

// --- Lanes ---

int64_t WindowBegin(const RunRecord& record, const checker::Violation& violation) {
  int64_t begin = violation.moment.true_time.nanos;
  bool any = false;
  for (const Mark& mark : record.marks) {
    if (!IsConcerned(violation, mark)) continue;
    begin = std::min(begin, mark.nanos);
    any = true;
  }
  return any ? begin : begin - kWindow;
}

// What the diagram shows, in order.
std::vector<const Mark*> Rows(const RunRecord& record, const checker::Violation& violation) {
  const int64_t begin = WindowBegin(record, violation);
  const std::set<uint64_t> faults = FaultsSince(record, violation, begin);
  const Mark* leader = nullptr;  // the last one before the window
  for (const Mark& mark : record.marks) {
    if (mark.kind == MarkKind::kLeader && mark.nanos < begin) leader = &mark;
  }
  std::vector<const Mark*> rows;
  size_t concerned = 0;
  for (const Mark& mark : record.marks) {
    if (!IsPast(violation, mark)) break;
    const bool is_concerned = IsConcerned(violation, mark);
    const bool in_window = mark.nanos >= begin;
    const bool is_plan = IsFault(mark.kind) ? faults.contains(mark.subject)
                                            : in_window && (mark.kind == MarkKind::kCrash || mark.kind == MarkKind::kRestart);
    const bool is_state = in_window && (mark.kind == MarkKind::kLeader || mark.kind == MarkKind::kNote);
    if (!is_concerned && !is_plan && !is_state && &mark != leader) continue;
    rows.push_back(&mark);
    concerned += is_concerned ? 1 : 0;
  }
  // Too many: the earliest of the others go.
  size_t excess = rows.size() > kLaneRowsMax ? rows.size() - kLaneRowsMax : 0;
  excess = std::min(excess, rows.size() - concerned);
  std::erase_if(rows, [&](const Mark* mark) {
    if (excess == 0 || IsConcerned(violation, *mark)) return false;
    --excess;
    return true;
  });
  return rows;
}

// How the lanes stand, row by row.
class LaneStates {
 public:
  void Take(const Mark& mark) {
    if (mark.kind == MarkKind::kCrash) down_.insert(mark.lane);
    if (mark.kind == MarkKind::kRestart) down_.erase(mark.lane);
    for (const uint32_t lane : mark.touched) {
      if (mark.kind == MarkKind::kFaultBegins) ++faults_[lane];
      if (mark.kind == MarkKind::kFaultEnds && faults_[lane] > 0) --faults_[lane];
    }
  }
  std::string Show(uint32_t lane) const {
    if (down_.contains(lane)) return ":";
    const auto fault = faults_.find(lane);
    return fault != faults_.end() && fault->second > 0 ? "#" : "|";
  }

 private:
  std::set<uint32_t> down_;
  std::map<uint32_t, uint32_t> faults_;
};

// --- Causes ---

// The marks that the violation follows from: backwards over messages, timers and disk calls, and within each lane from
// mark to mark.
std::vector<const Mark*> Past(const RunRecord& record, const checker::Violation& violation) {
  std::map<uint32_t, std::vector<const Mark*>> by_lane;
  std::map<uint64_t, std::vector<const Mark*>> by_event;
  std::deque<uint64_t> open = {violation.moment.event};
  for (const Mark& mark : record.marks) {
    by_lane[mark.lane].push_back(&mark);
    by_event[mark.event].push_back(&mark);
    if (IsPast(violation, mark) && IsConcerned(violation, mark)) open.push_back(mark.event);
  }
  std::set<uint64_t> seen(open.begin(), open.end());
  std::vector<const Mark*> past;
  const auto visit = [&](uint64_t event) {
    if (event != 0 && seen.insert(event).second) open.push_back(event);
  };
  while (!open.empty()) {
    const uint64_t event = open.front();
    open.pop_front();
    if (const auto found = by_event.find(event); found != by_event.end()) {
      past.insert(past.end(), found->second.begin(), found->second.end());
    }
    if (event >= record.parents.size()) continue;
    visit(record.parents[event]);
    const uint32_t lane = record.lanes[event];
    if (lane == 0) continue;
    const std::vector<const Mark*>& own = by_lane[lane];
    const auto next = std::ranges::lower_bound(own, event, {}, [](const Mark* mark) { return mark->event; });
    if (next != own.begin()) visit((*std::prev(next))->event);
  }
  return past;
}

// Smaller is told first.
uint32_t Weight(const checker::Violation& violation, const Mark& mark) {
  switch (mark.kind) {
    case MarkKind::kCall:
    case MarkKind::kReturn: return IsConcerned(violation, mark) ? 0 : 5;
    case MarkKind::kFaultBegins:
    case MarkKind::kFaultEnds:
    case MarkKind::kCrash:
    case MarkKind::kRestart:
    case MarkKind::kLeader:
    case MarkKind::kNote: return 1;
    case MarkKind::kRole:
    case MarkKind::kVote: return 2;
    case MarkKind::kCommit: return 3;
    case MarkKind::kSync: return 4;
  }
  return 5;
}

}  // namespace

std::string LaneName(const RunRecord& record, uint32_t clients, uint32_t lane) {
  if (lane == 0) return "world";
  if (lane <= record.members) return absl::StrFormat("m%d", lane);
  const uint32_t client = lane - record.members;
  return client <= clients ? absl::StrFormat("c%d", client) : absl::StrFormat("p%d", client - clients);
}

std::string LaneDiagram(const RunRecord& record, uint32_t clients, const checker::Violation& violation) {
  const std::vector<const Mark*> rows = Rows(record, violation);
  std::set<uint32_t> shown;
  for (uint32_t lane = 1; lane <= record.members; ++lane) shown.insert(lane);
  for (const Mark* mark : rows) {
    if (mark->lane != 0) shown.insert(mark->lane);
  }
  std::map<uint32_t, size_t> widths;
  for (const uint32_t lane : shown) widths[lane] = 4;
  for (const Mark* mark : rows) {
    if (mark->lane != 0) widths[mark->lane] = std::max(widths[mark->lane], std::min(mark->text.size() + 2, kCellWidthMax));
  }
  std::string text = absl::StrFormat("%13s", "ms");
  for (const uint32_t lane : shown) absl::StrAppendFormat(&text, "  %-*s", static_cast<int>(widths[lane]), LaneName(record, clients, lane));
  text += "\n";
  LaneStates states;
  for (size_t at = 0, row = 0; row < rows.size(); ++row) {
    // Also what is not shown changes how the lanes stand.
    while (&record.marks[at] != rows[row]) states.Take(record.marks[at++]);
    states.Take(record.marks[at++]);
    std::string line = absl::StrFormat("%13s", TimeText(rows[row]->nanos));
    for (const uint32_t lane : shown) {
      const std::string cell = rows[row]->lane == lane ? rows[row]->text : states.Show(lane);
      absl::StrAppendFormat(&line, "  %-*s", static_cast<int>(widths[lane]), cell);
    }
    if (rows[row]->lane == 0) line += "  " + rows[row]->text;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string CausalPast(const RunRecord& record, uint32_t clients, const checker::Violation& violation) {
  std::vector<const Mark*> told = Past(record, violation);
  // Faults act without being handled by anybody: those of the time of what is told belong to it.
  const std::set<uint64_t> faults = FaultsSince(record, violation, WindowBegin(record, violation));
  for (const Mark& mark : record.marks) {
    if (IsPast(violation, mark) && IsFault(mark.kind) && faults.contains(mark.subject)) told.push_back(&mark);
  }
  const auto place = [&](const Mark* mark) { return mark - record.marks.data(); };
  std::ranges::sort(told, {}, place);
  told.erase(std::unique(told.begin(), told.end()), told.end());
  const size_t all = told.size();
  std::ranges::stable_sort(told, [&](const Mark* a, const Mark* b) {
    const uint32_t weight_a = Weight(violation, *a);
    const uint32_t weight_b = Weight(violation, *b);
    return weight_a != weight_b ? weight_a < weight_b : place(a) > place(b);
  });
  const size_t lines = all > kCauseLinesMax ? kCauseLinesMax - 1 : all;
  told.resize(lines);
  std::ranges::sort(told, {}, place);
  std::string text;
  for (const Mark* mark : told) {
    absl::StrAppendFormat(&text, "%13s ms  #%-8d %-5s %-8s  %s\n", TimeText(mark->nanos), mark->event, LaneName(record, clients, mark->lane),
                          mark->term != 0 ? absl::StrFormat("term %d", mark->term) : "", mark->text);
  }
  if (all > lines) absl::StrAppendFormat(&text, "%13s     and %d lesser events of the %d that it follows from\n", "...", all - lines, all);
  return text;
}

}  // namespace detcd::scenario
