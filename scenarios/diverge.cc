#include "scenarios/diverge.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "scenarios/surroundings.h"
#include "scenarios/worker.h"

namespace detcd::scenario {
namespace {

constexpr rlim_t kCpuSecondsMax = 600;          // of one pass of one side; a usual one takes less than a second
constexpr size_t kStreamBytesMax = 256u << 20;  // a run of the most events, with a checkpoint for each, is below it
constexpr size_t kWordsBytesMax = 64 * 1024;
constexpr size_t kLogsToldMax = 6;              // of one event
constexpr int kNoProgramStatus = 127;           // as a shell says it
constexpr int kUsageStatus = 64;                // sysexits.h, EX_USAGE

struct Child {
  EventStream stream;
  std::string death;    // empty: it ended by itself
  std::string trouble;  // not empty: it says nothing of any run
};

[[noreturn]] void Throw(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string ReadAll(int fd, size_t bytes_max, bool& too_much) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
    too_much = text.size() > bytes_max;
    if (too_much) return text;
  }
}

// The last line of what a program said on standard error; its reason, where it had one.
std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t begin = text.rfind('\n');
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

// What a CHECK says first is the reason; of a program that knows none, the last line.
std::string Words(const std::string& text) {
  const size_t check = text.find("CHECK failed");
  return check == std::string::npos ? LastLine(text) : text.substr(check, text.find('\n', check) - check);
}

// What a program left behind.
struct Exited {
  std::string told;  // on standard output
  std::string said;  // on standard error
  int status = 0;    // as waitpid has it
  bool too_much = false;
};

[[noreturn]] void BecomeSide(const std::vector<char*>& arguments, char** environment, int told, int said) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const rlimit cpu{.rlim_cur = kCpuSecondsMax, .rlim_max = kCpuSecondsMax};
  setrlimit(RLIMIT_CPU, &cpu);
  if (dup2(told, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0) _exit(kNoProgramStatus);
  if (environment != nullptr) {
    AllowOtherLayout();
    environ = environment;
  }
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "%s: %s\n", arguments[0], std::strerror(errno));
  _exit(kNoProgramStatus);
}

Exited RunProgram(const RunSide& side, const EventRequest& request) {
  // All that the child needs is made before it is forked.
  std::vector<std::string> words = side.command;
  const std::vector<std::string> more = EventArguments(request, side.other_surroundings);
  words.insert(words.end(), more.begin(), more.end());
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<std::string> variables = OtherEnvironment();
  std::vector<char*> environment = Pointers(variables);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) Throw("pipe2");
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const Descriptor log(memfd_create("stderr", MFD_CLOEXEC));
  if (log.get() < 0) Throw("memfd_create");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) Throw("fork");
  if (pid == 0) BecomeSide(arguments, side.other_surroundings ? environment.data() : nullptr, theirs.get(), log.get());
  theirs = Descriptor();

  Exited exited;
  exited.told = ReadAll(ours.get(), kStreamBytesMax, exited.too_much);
  if (exited.too_much) kill(pid, SIGKILL);
  while (waitpid(pid, &exited.status, 0) < 0 && errno == EINTR) {}
  exited.said.resize(kWordsBytesMax);
  const ssize_t size = pread(log.get(), exited.said.data(), exited.said.size(), 0);
  exited.said.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return exited;
}

Child Start(const RunSide& side, const EventRequest& request) {
  const Exited exited = RunProgram(side, request);
  const int status = exited.status;
  Child child;
  if (exited.too_much) {
    child.trouble = "tells more than any run has to tell";
  } else if (WIFEXITED(status) && (WEXITSTATUS(status) == kNoProgramStatus || WEXITSTATUS(status) == kUsageStatus)) {
    child.trouble = LastLine(exited.said);
  } else if (std::optional<EventStream> stream = ParseEventStream(exited.told, child.trouble)) {
    child.stream = *std::move(stream);
    if (WIFSIGNALED(status)) {
      child.death = absl::StrFormat("dies of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
      child.death = absl::StrFormat("ends with status %d", WEXITSTATUS(status));
    } else if (!child.stream.end.has_value() && request.first == 0) {
      child.trouble = "tells no end of its run";
    }
    const std::string words = Words(exited.said);
    if (!child.death.empty() && !words.empty()) child.death += ": " + words;
  }
  if (!child.trouble.empty()) child.trouble = side.name + ": " + child.trouble;
  return child;
}

// How many at their beginning are equal.
template <class Items>
size_t CountEqual(const Items& a, const Items& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string EndText(const Child& child) {
  if (!child.death.empty()) return child.death;
  if (child.stream.end.has_value()) return "ends: " + child.stream.end->text;
  return "goes on";
}

bool EqualEnds(const Child& a, const Child& b) { return a.stream.end == b.stream.end && a.death == b.death; }

class DivergeSearch {
 public:
  DivergeSearch(const RunSide& a, const RunSide& b, const DivergeOptions& options)
      : sides_{&a, &b}, options_(options) {}

  Comparison Go() {
    if (options_.after.has_value()) {
      if (std::optional<Comparison> found = Narrow({.number = *options_.after}, sim::kCheckpointInterval)) return *found;
    }
    for (uint32_t attempt = 0; attempt < options_.attempts; ++attempt) {
      if (!Run({.every = options_.checkpoint_interval})) return {Likeness::kUnknown, trouble_};
      const Child& a = children_[0];
      const Child& b = children_[1];
      const auto& checkpoints = a.stream.checkpoints;
      const size_t equal = CountEqual(checkpoints, b.stream.checkpoints);
      const bool same = equal == checkpoints.size() && equal == b.stream.checkpoints.size() && EqualEnds(a, b);
      if (same && a.death.empty()) {
        if (attempt > 0) return Unsteady();
        const Checkpoint end = a.stream.end->at;
        return {Likeness::kEqual,
                absl::StrFormat("equal: %d events, digest %016x; the run %s\n", end.number, end.digest, EndText(a))};
      }
      const Checkpoint base = equal == 0 ? Checkpoint{} : checkpoints[equal - 1];
      if (std::optional<Comparison> found = Narrow(base, options_.checkpoint_interval)) return *found;
    }
    return Unsteady();
  }

 private:
  // Runs both sides; false: one of them cannot be.
  bool Run(const EventRequest& request) {
    for (int i : {0, 1}) {
      children_[i] = Start(*sides_[i], request);
      trouble_ = children_[i].trouble;
      if (!trouble_.empty()) return false;
    }
    return true;
  }

  // Finds the first different event of the `interval` events after `base`, whose digest is zero where it is not known.
  // nullopt: this time they did not part there.
  std::optional<Comparison> Narrow(const Checkpoint& base, uint64_t interval) {
    if (!Run({.first = base.number + 1, .last = base.number + interval})) {
      return Comparison{Likeness::kUnknown, trouble_};
    }
    const Child& a = children_[0];
    const Child& b = children_[1];
    for (const Child& child : children_) {
      const auto& checkpoints = child.stream.checkpoints;
      if (base.number == 0) continue;
      if (checkpoints.empty() || checkpoints[0] != a.stream.checkpoints[0]) return std::nullopt;
      if (base.digest != 0 && checkpoints[0] != base) return std::nullopt;
    }
    const auto& a_events = a.stream.events;
    const auto& b_events = b.stream.events;
    const size_t equal = CountEqual(a_events, b_events);
    if (equal == a_events.size() && equal == b_events.size() && EqualEnds(a, b)) {
      // Both died of the same, after the same event: one run.
      if (a.death.empty()) return std::nullopt;
      return Comparison{Likeness::kEqual,
                        absl::StrFormat("equal: both runs are the same up to event %d, where the process %s\n",
                                        base.number + equal, a.death)};
    }
    std::string story = absl::StrFormat("divergent: %d events are equal, the next is not\n", base.number + equal);
    for (int i : {0, 1}) story += Tell(i, equal);
    return Comparison{Likeness::kDivergent, story};
  }

  // One side of the story: its event at `place` of the interval, and what that follows from.
  std::string Tell(int i, size_t place) {
    const RunSide& side = *sides_[i];
    const Child& child = children_[i];
    std::string text = side.name + "\n";
    const auto& events = child.stream.events;
    if (place >= events.size()) {
      text += "  no such event: the process " + EndText(child) + "\n";
      // What it did last is what to look at.
      if (!events.empty()) text += TellEvent("  after   ", events.back()) + TellParents(side, events.back().cause);
      return text;
    }
    return text + TellEvent("  ", events[place]) + TellParents(side, events[place].cause);
  }

  std::string TellParents(const RunSide& side, uint64_t cause) const {
    std::string text;
    for (uint32_t depth = 0; cause != 0 && depth < options_.parents_max; ++depth) {
      const Child child = Start(side, {.first = cause, .last = cause});
      if (child.stream.events.empty()) {
        return text + absl::StrFormat("  because of event %d, which a further run does not have\n", cause);
      }
      text += TellEvent("  because of ", child.stream.events[0]);
      cause = child.stream.events[0].cause;
    }
    return text;
  }

  static std::string TellEvent(std::string_view before, const ToldEvent& event) {
    std::string text = absl::StrFormat("%s%s digest=%016x\n", before, event.text, event.digest);
    for (size_t i = 0; i < event.logs.size() && i < kLogsToldMax; ++i) text += "      " + event.logs[i] + "\n";
    if (event.logs.size() > kLogsToldMax) {
      text += absl::StrFormat("      and %d lines more\n", event.logs.size() - kLogsToldMax);
    }
    return text;
  }

  Comparison Unsteady() const {
    return {Likeness::kDivergent,
            "divergent, but not always at the same place: a further comparison does not show what the first one "
            "showed; one side is not even equal to itself\n"};
  }

  const RunSide* const sides_[2];
  const DivergeOptions options_;
  Child children_[2];
  std::string trouble_;
};

}  // namespace

std::vector<std::string> EventArguments(const EventRequest& request, bool other_heap) {
  std::vector<std::string> arguments;
  if (request.every != 0) arguments.insert(arguments.end(), {"--every", absl::StrFormat("%d", request.every)});
  if (request.first != 0) {
    arguments.insert(arguments.end(), {"--first", absl::StrFormat("%d", request.first)});
    arguments.insert(arguments.end(), {"--last", absl::StrFormat("%d", request.last)});
  }
  if (other_heap) arguments.push_back("--other-heap");
  return arguments;
}

Comparison Diverge(const RunSide& a, const RunSide& b, const DivergeOptions& options) {
  return DivergeSearch(a, b, options).Go();
}

}  // namespace detcd::scenario
