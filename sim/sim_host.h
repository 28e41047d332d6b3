// One incarnation of an endpoint: its inbox, its processor, its timers, and the seam's Host.
//
// Completions and arrivals wait in the inbox. The processor takes one per event of the world, so that a crash can come
// between any two; after 1..k of those that waited when the turn began, as the seed says, it ends the turn, as an event
// of its own. Only what comes from one source has an order (one stream, one file, all timers): a loop that polls takes
// what waits source by source, whatever came first, so a turn may do the same, in an order of the sources that is drawn. It may be slow: each event takes a service time, it may stop inside an event (time has moved on when the
// code looks again), and it may be paused while its clocks run and its inbox fills.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/host.h"
#include "sim/delay_law.h"
#include "sim/inbox.h"
#include "sim/sim_clock.h"
#include "sim/sim_files.h"
#include "sim/sim_messages.h"
#include "sim/sim_streams.h"
#include "sim/sim_trace.h"

namespace detcd::sim {

struct ProcessorKnobs {
  uint32_t turn_events_max = 8;
  uint32_t by_source_permille = 0;  // turns that take what waits by source, not in the order of arrival
  DelayLaw wake;      // from the first arrival to an idle processor until it looks: what comes in between shares a turn
  DelayLaw service;   // of each event
  uint32_t stall_permille = 0;  // readings of the clock at which the processor stops for `stall`
  DelayLaw stall;
  DelayLaw offload = DelayLaw::Uniform(Micros(50), Millis(20));
  DelayLaw resolve = DelayLaw::Uniform(Micros(50), Millis(5));
};

// What an incarnation works with; all of it outlives the incarnation.
struct HostParts {
  SimContext& context;
  SimStreams& streams;
  SimMessages& messages;
  SimFiles& files;
  SimClock& clock;
  TraceLog& trace;
  const ProcessorKnobs& knobs;
  const Duration& slowness;  // what each event takes beyond its service time: the machine's
};

class SimTimer;

class SimHost final : public Host, public Events, public Clock, public Network, public Offloader, public Trace {
 public:
  SimHost(const HostParts& parts, EndpointId endpoint, uint32_t incarnation);
  ~SimHost();
  SimHost(const SimHost&) = delete;

  // --- Host ---
  Events& events() override { return *this; }
  Clock& clock() override { return *this; }
  Network& network() override { return *this; }
  FileSystem& files() override { return parts_.files; }
  Offloader& offloader() override { return *this; }
  Trace& trace() override { return *this; }
  KeyedRandom Random(std::string_view component) override;
  void FillSecure(std::span<uint8_t> out) override;
  void Stop(bool ok, std::string reason) override;

  // --- Events, Clock, Network, Offloader, Trace ---
  void Post(PostListener& listener, uint64_t token) override;
  void SetTurnListener(TurnListener& listener) override;
  Instant Now() override;
  WallTime Wall() override;
  std::unique_ptr<Timer> NewTimer(TimerListener& listener, uint64_t token) override;
  ListenResult Listen(const Address& address, AcceptListener& listener) override;
  std::unique_ptr<Stream> Connect(const Address& address, StreamListener& listener) override;
  void Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) override;
  void Run(OffloadFunction function, Bytes input, OffloadListener& listener, uint64_t token) override;
  bool Wants(LogLevel level) const override { return parts_.trace.Wants(level); }
  void Emit(const TraceEvent& event) override;

  // --- for the world ---
  // The event that the one that ran last follows from: it sent the message, armed the timer or made the call.
  uint64_t parent() const { return parent_; }
  void Enqueue(const InboxItem& item);
  // kRun, kTimer, kBackground. True when code of the member ran.
  bool OnEvent(const Event& event);
  // The clock was set: armed timers are due at another true time.
  void ClockChanged();
  // The processor does nothing before `time` (true nanoseconds), which may be earlier than was said before.
  void PauseUntil(int64_t time);
  // Drops everything pending. Nothing is heard after this; timers that are left are dead. Whether an event waited or an
  // off-loaded function ran.
  bool End();

  int64_t TrueNow() const { return parts_.context.queue.now() + lag_; }
  bool stopped() const { return stopped_; }
  bool stopped_ok() const { return stopped_ok_; }
  const std::string& stop_reason() const { return stop_reason_; }
  uint32_t incarnation() const { return incarnation_; }
  size_t inbox_size() const { return inbox_.size(); }

 private:
  friend class SimTimer;

  struct TimerSlot {
    SimTimer* handle = nullptr;  // null: free
    TimerListener* listener = nullptr;
    uint64_t token = 0;
    Instant deadline;
    bool armed = false;
    bool due = false;     // waits in the inbox
    uint64_t epoch = 0;   // changes with each Arm and Disarm, and outlives the handle: older items are stale
    EventId event;
  };
  // A result that is on its way: of an off-loaded function, or of a name look-up.
  struct Background {
    OffloadFunction function = nullptr;
    OffloadListener* offload_listener = nullptr;
    ResolveListener* resolve_listener = nullptr;
    Bytes input;
    uint64_t token = 0;
    IoError error = IoError::kOk;
    std::vector<Address> addresses;
    EventId event;
  };

  uint64_t Source(uint64_t kind) const { return kind << 40 | uint64_t{endpoint_} << 20; }
  void ArmTimer(uint32_t slot, Instant deadline);
  void DisarmTimer(uint32_t slot);
  void FreeTimer(uint32_t slot);
  void ScheduleTimer(uint32_t slot);
  void TimerDue(const Event& event);
  void StartBackground(Background work, const DelayLaw& law);
  void ScheduleRun(int64_t at);
  void BeginTurn();
  void OrderBySource();
  bool RunNext();
  bool Deliver(const InboxItem& item);
  bool DeliverTimer(const InboxItem& item);
  bool DeliverBackground(const InboxItem& item);

  HostParts parts_;
  EndpointId endpoint_;
  uint32_t incarnation_;
  KeyedRandom random_;
  KeyedRandom secure_;

  TurnListener* turn_listener_ = nullptr;
  std::deque<InboxItem> inbox_;
  EventId run_event_;
  uint64_t turn_left_ = 0;     // items that still belong to this turn
  bool turn_heard_ = false;    // somebody heard an event of it
  int64_t lag_ = 0;            // how far the running code is past the world's time
  int64_t busy_until_ = 0;
  int64_t paused_until_ = 0;
  int64_t last_now_ = INT64_MIN;
  uint64_t parent_ = 0;        // the event that the running one follows from

  std::vector<TimerSlot> timers_;
  std::vector<uint32_t> free_timers_;
  std::vector<Background> background_;
  std::vector<uint32_t> free_background_;

  bool ended_ = false;
  bool stopped_ = false;
  bool stopped_ok_ = false;
  std::string stop_reason_;
};

}  // namespace detcd::sim
