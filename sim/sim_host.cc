#include "sim/sim_host.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace detcd::sim {
namespace {

constexpr uint64_t kRunSource = 3;
constexpr uint64_t kTimerSource = 4;
constexpr uint64_t kBackgroundSource = 5;

bool IsNumeric(std::string_view host) {
  return !host.empty() && (host.find(':') != std::string_view::npos ||
                           host.find_first_not_of("0123456789.") == std::string_view::npos);
}

// What comes from one source keeps its order: the kind that stands for it, and which of these.
std::pair<ItemKind, uint64_t> SourceOf(const InboxItem& item) {
  switch (item.kind) {
    case ItemKind::kTimer:
    case ItemKind::kPost:
      return {item.kind, 0};
    case ItemKind::kStreamConnected:
    case ItemKind::kStreamData:
    case ItemKind::kStreamWritable:
    case ItemKind::kStreamClosed:
      return {ItemKind::kStreamConnected, item.subject};
    case ItemKind::kAccept:
    case ItemKind::kFile:
    case ItemKind::kBackground:
      return {item.kind, item.subject};
    case ItemKind::kMessage:
      return {item.kind, item.value};
  }
  return {item.kind, 0};
}

}  // namespace

class SimTimer final : public Timer {
 public:
  SimTimer(SimHost* host, uint32_t slot) : host_(host), slot_(slot) {}
  ~SimTimer() override {
    if (host_ != nullptr) host_->FreeTimer(slot_);
  }
  void Arm(Instant deadline) override {
    if (host_ != nullptr) host_->ArmTimer(slot_, deadline);
  }
  void Disarm() override {
    if (host_ != nullptr) host_->DisarmTimer(slot_);
  }
  void Detach() { host_ = nullptr; }

 private:
  SimHost* host_;
  uint32_t slot_;
};

SimHost::SimHost(const HostParts& parts, EndpointId endpoint, uint32_t incarnation)
    : parts_(parts),
      endpoint_(endpoint),
      incarnation_(incarnation),
      random_(Random("sim/host")),
      secure_(Random("sim/secure")) {}

SimHost::~SimHost() { End(); }

KeyedRandom SimHost::Random(std::string_view component) {
  return parts_.context.Random(component).Sub(endpoint_).Sub(incarnation_);
}

void SimHost::FillSecure(std::span<uint8_t> out) {
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(secure_.Next());
}

void SimHost::Stop(bool ok, std::string reason) {
  if (stopped_) return;  // the first reason is the cause
  stopped_ = true;
  stopped_ok_ = ok;
  stop_reason_ = std::move(reason);
  // A stop from outside an event (while the member is being built) needs an event after which the world looks.
  EventQueue& queue = parts_.context.queue;
  if (!ended_ && !queue.IsPending(run_event_)) ScheduleRun(queue.now());
}

bool SimHost::End() {
  if (ended_) return false;
  ended_ = true;
  bool pending = !inbox_.empty();
  for (const InboxItem& item : inbox_) {
    if (item.kind == ItemKind::kMessage) parts_.messages.Drop(item);
  }
  inbox_.clear();
  pending |= parts_.context.queue.Cancel(run_event_);
  for (TimerSlot& timer : timers_) {
    parts_.context.queue.Cancel(timer.event);
    if (timer.handle != nullptr) timer.handle->Detach();
  }
  timers_.clear();
  for (Background& work : background_) pending |= parts_.context.queue.Cancel(work.event);
  background_.clear();
  turn_listener_ = nullptr;
  return pending;
}

// --- The processor ---

void SimHost::Enqueue(const InboxItem& item) {
  if (ended_) return;
  inbox_.push_back(item);
  inbox_.back().cause = parts_.context.queue.cause();
  if (parts_.context.queue.IsPending(run_event_)) return;
  ScheduleRun(parts_.context.queue.now() + DrawDelay(parts_.knobs.wake, random_).nanos);
}

void SimHost::ScheduleRun(int64_t at) {
  run_event_ = parts_.context.queue.Push(std::max(at, busy_until_), Source(kRunSource),
                                         {.kind = EventKind::kRun, .target = endpoint_});
}

void SimHost::PauseUntil(int64_t time) {
  const bool sooner = time < paused_until_;
  paused_until_ = time;
  EventQueue& queue = parts_.context.queue;
  if (sooner && queue.Cancel(run_event_)) ScheduleRun(std::max(time, queue.now()));
}

bool SimHost::OnEvent(const Event& event) {
  switch (event.kind) {
    case EventKind::kRun:
      return RunNext();
    case EventKind::kTimer:
      TimerDue(event);
      return false;
    case EventKind::kBackground:
      Enqueue({.kind = ItemKind::kBackground, .subject = event.subject});
      return false;
    default:
      CHECK_MSG(false, "not an event of a host");
  }
  return false;
}

bool SimHost::RunNext() {
  EventQueue& queue = parts_.context.queue;
  if (stopped_) return false;
  if (queue.now() < paused_until_) {
    parts_.context.effects.At(endpoint_).Effective(FaultKind::kPause, Nanos(paused_until_ - queue.now()));
    ScheduleRun(paused_until_);
    return false;
  }
  queue.set_cause(queue.popped());
  lag_ = 0;
  bool ran = false;
  if (turn_left_ == 0 && turn_heard_) {
    turn_heard_ = false;
    ran = turn_listener_ != nullptr;
    if (ran) turn_listener_->OnEndTurn();
  } else {
    if (turn_left_ == 0) BeginTurn();
    while (!ran && turn_left_ > 0) {
      const InboxItem item = inbox_.front();
      inbox_.pop_front();
      --turn_left_;
      parent_ = item.cause;
      ran = Deliver(item);
    }
    turn_heard_ |= ran && turn_listener_ != nullptr;
    if (ran) lag_ += DrawDelay(parts_.knobs.service, random_).nanos + parts_.slowness.nanos;
    if (ran && parts_.slowness.nanos > 0) {
      parts_.context.effects.At(endpoint_).Effective(FaultKind::kSlowProcessor, parts_.slowness);
    }
  }
  busy_until_ = queue.now() + lag_;
  lag_ = 0;
  const bool more = turn_left_ > 0 || turn_heard_ || !inbox_.empty();
  if (more && !queue.IsPending(run_event_)) ScheduleRun(queue.now());
  return ran;
}

void SimHost::BeginTurn() {
  const uint32_t by_source = parts_.knobs.by_source_permille;
  if (inbox_.size() > 1 && by_source > 0 && random_.Chance(by_source, 1000)) OrderBySource();
  const uint64_t most = std::max<uint64_t>(parts_.knobs.turn_events_max, 1);
  turn_left_ = std::min<uint64_t>(random_.Between(uint64_t{1}, most), inbox_.size());
}

void SimHost::OrderBySource() {
  const KeyedRandom order = random_.Sub(parts_.context.queue.popped());
  std::vector<std::pair<uint64_t, size_t>> places;  // the drawn place of its source, and when it came
  for (size_t i = 0; i < inbox_.size(); ++i) {
    const auto [kind, number] = SourceOf(inbox_[i]);
    places.emplace_back(order.Sub(static_cast<uint64_t>(kind)).Sub(number).Next(), i);
  }
  if (std::is_sorted(places.begin(), places.end())) return;
  std::sort(places.begin(), places.end());
  std::deque<InboxItem> ordered;
  for (const auto& [place, i] : places) ordered.push_back(inbox_[i]);
  inbox_ = std::move(ordered);
  parts_.context.effects.At(endpoint_).Effective(FaultKind::kOvertaking);
}

bool SimHost::Deliver(const InboxItem& item) {
  switch (item.kind) {
    case ItemKind::kTimer:
      return DeliverTimer(item);
    case ItemKind::kPost:
      item.listener->OnPost(item.value);
      return true;
    case ItemKind::kStreamConnected:
    case ItemKind::kStreamData:
    case ItemKind::kStreamWritable:
    case ItemKind::kStreamClosed:
    case ItemKind::kAccept:
      return parts_.streams.Deliver(item);
    case ItemKind::kFile:
      return parts_.files.Deliver(item);
    case ItemKind::kBackground:
      return DeliverBackground(item);
    case ItemKind::kMessage:
      return parts_.messages.Deliver(endpoint_, item);
  }
  return false;
}

void SimHost::Post(PostListener& listener, uint64_t token) {
  Enqueue({.kind = ItemKind::kPost, .value = token, .listener = &listener});
}

void SimHost::SetTurnListener(TurnListener& listener) {
  CHECK_MSG(turn_listener_ == nullptr, "one listener hears the ends of turns");
  turn_listener_ = &listener;
}

// --- Time ---

Instant SimHost::Now() {
  const ProcessorKnobs& knobs = parts_.knobs;
  if (knobs.stall_permille > 0 && random_.Chance(knobs.stall_permille, 1000)) {
    parts_.context.effects.At(endpoint_).Effective(FaultKind::kPause);
    lag_ += DrawDelay(knobs.stall, random_).nanos;
  }
  // A clock that is frozen or slowed while the code is ahead of the world must not fall.
  last_now_ = std::max(last_now_, parts_.clock.Local(TrueNow()).nanos);
  return {last_now_};
}

WallTime SimHost::Wall() {
  if (parts_.clock.TakeWallJumped()) parts_.context.effects.At(endpoint_).Effective(FaultKind::kWallJump);
  return parts_.clock.Wall(TrueNow());
}

std::unique_ptr<Timer> SimHost::NewTimer(TimerListener& listener, uint64_t token) {
  uint32_t slot = 0;
  if (free_timers_.empty()) {
    slot = static_cast<uint32_t>(timers_.size());
    timers_.emplace_back();
  } else {
    slot = free_timers_.back();
    free_timers_.pop_back();
  }
  auto timer = std::make_unique<SimTimer>(ended_ ? nullptr : this, slot);
  timers_[slot].handle = timer.get();
  timers_[slot].listener = &listener;
  timers_[slot].token = token;
  return timer;
}

void SimHost::ArmTimer(uint32_t slot, Instant deadline) {
  DisarmTimer(slot);
  TimerSlot& timer = timers_[slot];
  timer.deadline = deadline;
  timer.armed = true;
  ScheduleTimer(slot);
}

void SimHost::DisarmTimer(uint32_t slot) {
  TimerSlot& timer = timers_[slot];
  ++timer.epoch;
  timer.armed = false;
  timer.due = false;
  parts_.context.queue.Cancel(timer.event);
}

void SimHost::FreeTimer(uint32_t slot) {
  DisarmTimer(slot);
  timers_[slot].handle = nullptr;
  free_timers_.push_back(slot);
}

void SimHost::ScheduleTimer(uint32_t slot) {
  TimerSlot& timer = timers_[slot];
  const std::optional<int64_t> at = parts_.clock.TrueTimeOf(timer.deadline);
  if (parts_.clock.drift_ppm() != 0) {
    const bool frozen = parts_.clock.drift_ppm() == kFrozenPpm;
    const int64_t now = parts_.context.queue.now();
    parts_.context.effects.At(endpoint_).Effective(frozen ? FaultKind::kClockFreeze : FaultKind::kClockDrift,
                                                   Nanos(std::max(at.value_or(now), now) - now));
  }
  if (!at.has_value()) return;  // frozen: ClockChanged comes when it runs again
  timer.event = parts_.context.queue.Push(
      *at, Source(kTimerSource), {.kind = EventKind::kTimer, .target = endpoint_, .subject = slot, .value = timer.epoch});
}

void SimHost::ClockChanged() {
  for (uint32_t slot = 0; slot < timers_.size(); ++slot) {
    if (!timers_[slot].armed || timers_[slot].due) continue;
    parts_.context.queue.Cancel(timers_[slot].event);
    ScheduleTimer(slot);
  }
}

void SimHost::TimerDue(const Event& event) {
  TimerSlot& timer = timers_[event.subject];
  CHECK(timer.epoch == event.value);  // every change cancels the event
  CHECK(parts_.clock.Local(parts_.context.queue.now()) >= timer.deadline);
  timer.due = true;
  Enqueue({.kind = ItemKind::kTimer, .subject = event.subject, .value = event.value});
}

bool SimHost::DeliverTimer(const InboxItem& item) {
  TimerSlot& timer = timers_[item.subject];
  if (timer.epoch != item.value || !timer.armed) return false;
  timer.armed = false;
  timer.due = false;
  timer.listener->OnTimer(timer.token);
  return true;
}

// --- Network, off-loading, names ---

ListenResult SimHost::Listen(const Address& address, AcceptListener& listener) {
  return parts_.streams.Listen(endpoint_, address, listener);
}

std::unique_ptr<Stream> SimHost::Connect(const Address& address, StreamListener& listener) {
  return parts_.streams.Connect(endpoint_, address, listener);
}

void SimHost::StartBackground(Background work, const DelayLaw& law) {
  if (ended_) return;
  uint32_t slot = 0;
  if (free_background_.empty()) {
    slot = static_cast<uint32_t>(background_.size());
    background_.emplace_back();
  } else {
    slot = free_background_.back();
    free_background_.pop_back();
  }
  const int64_t at = TrueNow() + DrawDelay(law, random_).nanos;
  work.event = parts_.context.queue.Push(at, Source(kBackgroundSource) | slot,
                                         {.kind = EventKind::kBackground, .target = endpoint_, .subject = slot});
  background_[slot] = std::move(work);
}

void SimHost::Run(OffloadFunction function, Bytes input, OffloadListener& listener, uint64_t token) {
  StartBackground({.function = function, .offload_listener = &listener, .input = std::move(input), .token = token},
                  parts_.knobs.offload);
}

void SimHost::Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) {
  Background work = {.resolve_listener = &listener, .token = token};
  if (IsNumeric(host)) {
    work.addresses.push_back({.host = host, .port = port});
  } else if (host == "localhost") {
    work.addresses.push_back({.host = "127.0.0.1", .port = port});
  } else {
    work.error = IoError::kNotFound;
  }
  StartBackground(std::move(work), parts_.knobs.resolve);
}

bool SimHost::DeliverBackground(const InboxItem& item) {
  const Background work = std::exchange(background_[item.subject], {});
  free_background_.push_back(static_cast<uint32_t>(item.subject));
  if (work.offload_listener != nullptr) {
    work.offload_listener->OnOffloaded(work.token, work.function(work.input.view()));
  } else {
    work.resolve_listener->OnResolved(work.token, work.error, work.addresses);
  }
  return true;
}

void SimHost::Emit(const TraceEvent& event) {
  if (!Wants(event.level)) return;
  parts_.trace.Add({.time = TrueNow(),
                    .endpoint = endpoint_,
                    .incarnation = incarnation_,
                    .event = parts_.context.queue.popped(),
                    .parent = parent_,
                    .level = event.level,
                    .text = FormatTraceEvent(event)});
}

}  // namespace detcd::sim
