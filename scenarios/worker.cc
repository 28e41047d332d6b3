#include "scenarios/worker.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "scenarios/runner.h"
#include "scenarios/surroundings.h"

namespace detcd::scenario {
namespace {

// Where a worker finds what it inherits, forked or started as a program.
constexpr int kSocketFd = 3;
constexpr int kSlotsFd = 4;
constexpr int kFirstOtherFd = 5;
constexpr int kOutOfMemoryStatus = 88;
constexpr size_t kMessageBytesMax = 2 * kStoryBytesMax;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMayLimitMemory = false;  // the sanitizer reserves terabytes of addresses
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kMayLimitMemory = false;
#else
constexpr bool kMayLimitMemory = true;
#endif
#else
constexpr bool kMayLimitMemory = true;
#endif

struct Task {
  uint64_t seed = 0;
  uint64_t slot = 0;
  bool other_memory = false;
};

[[noreturn]] void Throw(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

int Checked(int result, const char* what) {
  if (result < 0) Throw(what);
  return result;
}

int64_t Nanos(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

int64_t OwnCpuNanos() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return Nanos(time);
}

void OutOfMemory() {
  constexpr std::string_view kText = "out of memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kOutOfMemoryStatus);
}

void CutStory(SeedReport& report) {
  if (report.story().size() > kStoryBytesMax) {
    report.mutable_story()->resize(kStoryBytesMax);
    report.mutable_story()->append("...\n");
  }
}

std::string_view FirstLineWith(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return {};
  const size_t begin = text.rfind('\n', at);
  text.remove_prefix(begin == std::string_view::npos ? 0 : begin + 1);
  return text.substr(0, text.find('\n'));
}

// What a dying process said of the reason, in one line; may be empty.
std::string_view LastWords(std::string_view log) {
  for (std::string_view word : {"CHECK failed", "ERROR: ", "runtime error:", "terminate called", "Assertion"}) {
    if (std::string_view line = FirstLineWith(log, word); !line.empty()) return line;
  }
  return log.substr(0, log.find('\n'));
}

bool IsWordPart(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// `words` without its numbers, but for those of lines in files: equal for the same trouble.
std::string WithoutNumbers(std::string_view words) {
  std::string result;
  size_t at = 0;
  while (at < words.size()) {
    size_t end = at;
    while (end < words.size() && IsWordPart(words[end])) ++end;
    if (end == at) {
      result += words[at++];
      continue;
    }
    const std::string_view word = words.substr(at, end - at);
    const bool is_line = result.ends_with(".cc:") || result.ends_with(".h:");
    result += !is_line && word.find_first_of("0123456789") != std::string_view::npos ? std::string_view("#") : word;
    at = end;
  }
  return result;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

WorkerSlots::WorkerSlots(size_t count)
    : fd_(Checked(memfd_create("slots", MFD_CLOEXEC), "memfd_create")), bytes_(count * sizeof(WorkerSlot)) {
  Checked(ftruncate(fd_.get(), static_cast<off_t>(bytes_)), "ftruncate");
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) Throw("mmap");
  slots_ = static_cast<WorkerSlot*>(memory);
  for (size_t i = 0; i < count; ++i) new (&slots_[i]) WorkerSlot{.seed = 0, .cpu_began_ns = -1};
}

WorkerSlots::~WorkerSlots() { munmap(slots_, bytes_); }

Worker::Worker(const SweepOptions& options, const RunSeed& run, WorkerSlots& slots, size_t slot, bool twin)
    : options_(options), run_(run), slots_(slots), slot_(slot), twin_(twin) {
  Start();
}

Worker::~Worker() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Worker::Start() {
  int ends[2];
  Checked(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  log_ = Descriptor(Checked(memfd_create("stderr", MFD_CLOEXEC), "memfd_create"));
  slots_.at(slot_).cpu_began_ns = -1;
  killed_because_.clear();
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = Checked(fork(), "fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    BecomeChild(theirs.get());
  }
  socket_ = std::move(ours);
}

void Worker::BecomeChild(int socket) {
  // Above every number that is about to be taken.
  socket = fcntl(socket, F_DUPFD, 100);
  const int slots = fcntl(slots_.fd(), F_DUPFD, 100);
  const int log = fcntl(log_.get(), F_DUPFD, 100);
  if (dup2(socket, kSocketFd) < 0 || dup2(slots, kSlotsFd) < 0 || dup2(log, STDERR_FILENO) < 0) _exit(1);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  close_range(kFirstOtherFd, ~0u, 0);
  // A terminal's interrupt is the parent's to answer.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (kMayLimitMemory) {
    const rlimit memory{.rlim_cur = options_.limits.memory_bytes_max, .rlim_max = options_.limits.memory_bytes_max};
    setrlimit(RLIMIT_AS, &memory);
  }
  if (twin_ && !options_.twin_command.empty()) {
    std::vector<char*> arguments;
    for (const std::string& argument : options_.twin_command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const std::vector<std::string> variables = OtherEnvironment();
    std::vector<char*> environment;
    for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    AllowOtherLayout();
    execve("/proc/self/exe", arguments.data(), environment.data());
    _exit(1);
  }
  ServeSeeds(run_);
}

void Worker::Give(uint64_t seed) {
  const Task task{.seed = seed, .slot = slot_, .other_memory = twin_};
  seed_ = seed;
  cpu_seen_ns_ = -1;
  // A failure means that it is dead: Take tells.
  [[maybe_unused]] const ssize_t sent = send(socket_.get(), &task, sizeof(task), MSG_NOSIGNAL);
}

std::optional<SeedReport> Worker::Take() {
  std::string message(kMessageBytesMax, '\0');
  const ssize_t size = recv(socket_.get(), message.data(), message.size(), 0);
  SeedReport report;
  if (size > 0 && report.ParseFromArray(message.data(), static_cast<int>(size))) {
    seed_.reset();
    return report;
  }
  report = Death();
  Start();
  if (!std::exchange(seed_, std::nullopt).has_value()) return std::nullopt;
  return report;
}

SeedReport Worker::Death() {
  kill(pid_, SIGKILL);  // it may have closed its socket only
  int status = 0;
  Checked(waitpid(pid_, &status, 0), "waitpid");
  SeedReport report;
  report.set_seed(seed_.value_or(0));
  report.set_verdict(static_cast<uint32_t>(Verdict::kCrash));
  const std::string log = Log();
  report.set_property("crash");
  if (!killed_because_.empty()) {
    report.set_property("hang");
    report.set_sentence(killed_because_);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemoryStatus) {
    report.set_property("memory");
    report.set_sentence(absl::StrFormat("wants more than %d MiB of memory", options_.limits.memory_bytes_max >> 20));
  } else {
    const std::string how = WIFSIGNALED(status) ? absl::StrFormat("died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)))
                                                : absl::StrFormat("ended with status %d", WEXITSTATUS(status));
    const std::string words(LastWords(log));
    report.set_sentence(words.empty() ? "the process " + how : words + "; the process " + how);
  }
  report.set_signature(report.property() + ": " + WithoutNumbers(LastWords(log)));
  report.set_story(report.property() + ": " + report.sentence() + "\n" + log);
  CutStory(report);
  return report;
}

std::string Worker::Log() const {
  std::string text(kStoryBytesMax, '\0');
  const ssize_t size = pread(log_.get(), text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

void Worker::Watch(int64_t now_ns) {
  if (idle() || !killed_because_.empty()) return;
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return;  // dead: the socket tells
  const int64_t cpu_ns = Nanos(time);
  if (cpu_ns != cpu_seen_ns_) {
    cpu_seen_ns_ = cpu_ns;
    cpu_rose_at_ns_ = now_ns;
  }
  const int64_t began_ns = slots_.at(slot_).cpu_began_ns;
  if (began_ns >= 0 && slots_.at(slot_).seed == *seed_ && cpu_ns - began_ns > options_.limits.cpu_ns_max) {
    killed_because_ = absl::StrFormat("takes more than %d ms of CPU time", options_.limits.cpu_ns_max / 1'000'000);
  } else if (now_ns - cpu_rose_at_ns_ > options_.limits.stall_ns_max) {
    killed_because_ = absl::StrFormat("waits without end: no CPU time used for %d ms", options_.limits.stall_ns_max / 1'000'000);
  }
  if (!killed_because_.empty()) kill(pid_, SIGKILL);
}

void ServeSeeds(const RunSeed& run) {
  std::set_new_handler(OutOfMemory);
  WorkerSlot* slots = nullptr;
  size_t bytes = 0;
  Task task;
  while (recv(kSocketFd, &task, sizeof(task), 0) == static_cast<ssize_t>(sizeof(task))) {
    if (slots == nullptr) {
      const off_t size = lseek(kSlotsFd, 0, SEEK_END);
      bytes = size < 0 ? 0 : static_cast<size_t>(size);
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kSlotsFd, 0);
      if (memory == MAP_FAILED) _exit(1);
      slots = static_cast<WorkerSlot*>(memory);
    }
    if ((task.slot + 1) * sizeof(WorkerSlot) > bytes) _exit(1);
    if (ftruncate(STDERR_FILENO, 0) == 0) lseek(STDERR_FILENO, 0, SEEK_SET);
    if (task.other_memory) DisturbHeap(task.seed);
    const int64_t began_ns = OwnCpuNanos();
    slots[task.slot].seed = task.seed;
    slots[task.slot].cpu_began_ns = began_ns;
    SeedReport report = run(task.seed);
    report.set_seed(task.seed);
    report.set_cpu_ns(static_cast<uint64_t>(OwnCpuNanos() - began_ns));
    slots[task.slot].cpu_began_ns = -1;
    CutStory(report);
    const std::string message = report.SerializeAsString();
    if (send(kSocketFd, message.data(), message.size(), MSG_NOSIGNAL) < 0) _exit(1);
  }
  _exit(0);
}

}  // namespace detcd::scenario
