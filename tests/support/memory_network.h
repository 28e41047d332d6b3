// A world in memory for unit tests: clock, events, trace and streams in one thread under the test's control. Nothing
// happens but in Turn and Advance. Links are cut, stalled and narrowed by name; time moves only in Advance.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/io/clock.h"
#include "core/io/events.h"
#include "core/io/streams.h"
#include "core/io/trace.h"

namespace detcd {

class MemoryNetwork final : public Network, public Clock, public Events, public Trace {
 public:
  MemoryNetwork();
  ~MemoryNetwork();

  // --- what the test does -------------------------------------------------------------------------------------------

  // Runs every event that can run now, and what follows from it, each followed by the ends of turns.
  void Run();
  // Lets time pass, timers firing at their instants.
  void Advance(Duration duration);
  // After each event these are called: the members' EndTurn.
  void AtEndOfTurn(std::function<void()> call) { end_of_turn_.push_back(std::move(call)); }

  // New connections to `port` are refused, or reset and refused again; existing ones are reset.
  void Cut(uint16_t port);
  void Heal(uint16_t port) { cut_.erase(port); }
  // Bytes from and to `port` stay where they are, without a word, until Unstall.
  void Stall(uint16_t port) { stalled_.insert(port); }
  void Unstall(uint16_t port) { stalled_.erase(port); }
  // How many bytes each direction of a connection holds before Write takes less (0: nothing at all).
  void SetCapacity(size_t bytes) { capacity_ = bytes; }
  // Delivers at most so many bytes in one OnData.
  void SetPiece(size_t bytes) { piece_ = bytes; }
  // Names that Resolve knows besides numeric ones.
  void AddName(const std::string& name, std::vector<std::string> hosts) { names_[name] = std::move(hosts); }

  size_t connects() const { return connects_; }              // calls of Connect
  size_t writes() const { return writes_; }                  // calls of Write
  const std::vector<std::string>& trace() const { return trace_; }
  bool Traced(std::string_view part) const;

  // --- the seam -----------------------------------------------------------------------------------------------------

  ListenResult Listen(const Address& address, AcceptListener& listener) override;
  std::unique_ptr<Stream> Connect(const Address& address, StreamListener& listener) override;
  void Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) override;
  Instant Now() override { return now_; }
  WallTime Wall() override { return {1'796'061'600'000'000'000 + now_.nanos}; }  // 2026-11-30T18:00:00Z
  std::unique_ptr<Timer> NewTimer(TimerListener& listener, uint64_t token) override;
  void Post(PostListener& listener, uint64_t token) override;
  void SetTurnListener(TurnListener&) override {}
  bool Wants(LogLevel) const override { return true; }
  void Emit(const TraceEvent& event) override;

 private:
  struct Pipe;
  struct End;
  class MemoryStream;
  class MemoryAcceptor;
  class MemoryTimer;

  void EndTurn();
  bool RunOne();
  bool RunStreams();
  bool IsStalled(const Pipe& pipe) const { return stalled_.contains(pipe_port(pipe)); }
  static uint16_t pipe_port(const Pipe& pipe);
  void FireTimers();

  Instant now_{1'000'000'000};
  std::deque<std::function<void()>> events_;
  std::vector<std::function<void()>> end_of_turn_;
  std::map<uint16_t, MemoryAcceptor*> acceptors_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  std::vector<MemoryTimer*> timers_;  // in the order of NewTimer
  std::map<std::string, std::vector<std::string>> names_;
  std::set<uint16_t> cut_;
  std::set<uint16_t> stalled_;
  size_t capacity_ = 1'048'576;
  size_t piece_ = 65'536;
  uint16_t next_port_ = 40'000;
  size_t connects_ = 0;
  size_t writes_ = 0;
  std::vector<std::string> trace_;
};

}  // namespace detcd
