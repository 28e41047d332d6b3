#include "tests/support/memory_network.h"

#include <algorithm>

namespace detcd {

// One end of a connection: what was written towards it and not yet delivered, and who listens.
struct MemoryNetwork::End {
  StreamListener* listener = nullptr;  // null: destroyed, or not yet accepted
  std::string inbound;
  bool read_end_pending = false;
  bool read_end_done = false;
  bool wrote_end = false;
  bool wants_room = false;
  bool paused = false;
  bool destroyed = false;
  bool closed = false;  // heard OnClosed
};

struct MemoryNetwork::Pipe {
  uint16_t port = 0;  // of the listening side
  bool connected = false;
  End ends[2];  // 0 dialled
  IoError pending_close[2] = {IoError::kOk, IoError::kOk};
};

uint16_t MemoryNetwork::pipe_port(const Pipe& pipe) { return pipe.port; }

class MemoryNetwork::MemoryStream final : public Stream {
 public:
  MemoryStream(MemoryNetwork& network, std::shared_ptr<Pipe> pipe, int side)
      : network_(network), pipe_(std::move(pipe)), side_(side) {}
  ~MemoryStream() override {
    self().destroyed = true;
    self().listener = nullptr;
    // Without an end of writing before it, the other side sees a reset.
    if (!self().wrote_end && !other().closed) pipe_->pending_close[1 - side_] = IoError::kReset;
  }
  void SetListener(StreamListener& listener) override { self().listener = &listener; }
  size_t Write(std::span<const Bytes> pieces) override {
    ++network_.writes_;
    if (!pipe_->connected || self().wrote_end || self().closed) return 0;
    size_t taken = 0;
    for (const Bytes& piece : pieces) {
      const size_t used = other().inbound.size();
      const size_t room = network_.capacity_ > used ? network_.capacity_ - used : 0;
      const size_t size = std::min(room, piece.size());
      if (!other().destroyed) other().inbound.append(piece.view().substr(0, size));
      taken += size;
      if (size < piece.size()) {
        self().wants_room = true;
        break;
      }
    }
    return taken;
  }
  void CloseWrite() override {
    self().wrote_end = true;
    other().read_end_pending = true;
  }
  void PauseReading() override { self().paused = true; }
  void ResumeReading() override { self().paused = false; }
  Address Remote() const override { return {.host = "127.0.0.1", .port = pipe_->port}; }

 private:
  End& self() { return pipe_->ends[side_]; }
  End& other() { return pipe_->ends[1 - side_]; }

  MemoryNetwork& network_;
  std::shared_ptr<Pipe> pipe_;
  int side_;
};

class MemoryNetwork::MemoryAcceptor final : public Acceptor {
 public:
  MemoryAcceptor(MemoryNetwork& network, Address address, AcceptListener& listener)
      : network_(network), address_(std::move(address)), listener_(listener) {}
  ~MemoryAcceptor() override { network_.acceptors_.erase(address_.port); }
  Address Local() const override { return address_; }
  void PauseAccepting() override {}
  void ResumeAccepting() override {}
  AcceptListener& listener() { return listener_; }

 private:
  MemoryNetwork& network_;
  Address address_;
  AcceptListener& listener_;
};

class MemoryNetwork::MemoryTimer final : public Timer {
 public:
  MemoryTimer(MemoryNetwork& network, TimerListener& listener, uint64_t token)
      : network_(network), listener_(listener), token_(token) {
    network_.timers_.push_back(this);
  }
  ~MemoryTimer() override { std::erase(network_.timers_, this); }
  void Arm(Instant when) override { armed = true, deadline = when; }
  void Disarm() override { armed = false; }
  void Fire() {
    armed = false;
    listener_.OnTimer(token_);
  }

  bool armed = false;
  Instant deadline;

 private:
  MemoryNetwork& network_;
  TimerListener& listener_;
  uint64_t token_;
};

MemoryNetwork::MemoryNetwork() = default;
MemoryNetwork::~MemoryNetwork() = default;

bool MemoryNetwork::Traced(std::string_view part) const {
  return std::any_of(trace_.begin(), trace_.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

void MemoryNetwork::Emit(const TraceEvent& event) {
  std::string line(event.message);
  for (uint64_t i = 0; i < event.field_count; ++i) {
    const TraceField& field = event.fields[i];
    line += " " + std::string(field.name) + "=" + (field.is_text ? std::string(field.text) : std::to_string(field.number));
  }
  trace_.push_back(std::move(line));
}

ListenResult MemoryNetwork::Listen(const Address& address, AcceptListener& listener) {
  Address local = address;
  if (local.port == 0) local.port = next_port_++;
  if (acceptors_.contains(local.port)) return {.error = IoError::kAddressInUse};
  auto acceptor = std::make_unique<MemoryAcceptor>(*this, local, listener);
  acceptors_[local.port] = acceptor.get();
  return {.acceptor = std::move(acceptor)};
}

std::unique_ptr<Stream> MemoryNetwork::Connect(const Address& address, StreamListener& listener) {
  ++connects_;
  auto pipe = std::make_shared<Pipe>();
  pipe->port = address.port;
  pipe->ends[0].listener = &listener;
  pipes_.push_back(pipe);
  return std::make_unique<MemoryStream>(*this, pipe, 0);
}

void MemoryNetwork::Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) {
  events_.push_back([this, host, port, &listener, token] {
    std::vector<Address> addresses;
    if (const auto found = names_.find(host); found != names_.end()) {
      for (const std::string& numeric : found->second) addresses.push_back({.host = numeric, .port = port});
    } else if (!host.empty() && host.find_first_not_of("0123456789.:") == std::string::npos) {
      addresses.push_back({.host = host, .port = port});
    }
    const IoError error = addresses.empty() ? IoError::kNotFound : IoError::kOk;
    listener.OnResolved(token, error, std::move(addresses));
  });
}

std::unique_ptr<Timer> MemoryNetwork::NewTimer(TimerListener& listener, uint64_t token) {
  return std::make_unique<MemoryTimer>(*this, listener, token);
}

void MemoryNetwork::Post(PostListener& listener, uint64_t token) {
  events_.push_back([&listener, token] { listener.OnPost(token); });
}

void MemoryNetwork::Cut(uint16_t port) {
  cut_.insert(port);
  for (const auto& pipe : pipes_) {
    if (pipe->port == port) pipe->pending_close[0] = pipe->pending_close[1] = IoError::kReset;
  }
}

void MemoryNetwork::EndTurn() {
  for (const auto& call : end_of_turn_) call();
}

// One event of one connection; false when none can run.
bool MemoryNetwork::RunStreams() {
  for (const auto& pipe : std::vector(pipes_)) {
    if (IsStalled(*pipe)) continue;
    if (!pipe->connected && pipe->ends[0].listener != nullptr && !pipe->ends[0].closed) {
      const auto acceptor = acceptors_.find(pipe->port);
      if (acceptor == acceptors_.end() || cut_.contains(pipe->port)) {
        pipe->ends[0].closed = true;
        pipe->ends[0].listener->OnClosed(IoError::kRefused);
        return true;
      }
      pipe->connected = true;
      events_.push_back([this, pipe] {
        if (const auto still = acceptors_.find(pipe->port); still != acceptors_.end()) {
          still->second->listener().OnAccept(std::make_unique<MemoryStream>(*this, pipe, 1));
        }
      });
      pipe->ends[0].listener->OnConnected();
      return true;
    }
    for (int side = 0; side < 2; ++side) {
      End& end = pipe->ends[side];
      if (end.listener == nullptr || end.closed) continue;
      if (pipe->pending_close[side] != IoError::kOk) {
        end.closed = true;
        end.listener->OnClosed(pipe->pending_close[side]);
        return true;
      }
      if (!end.inbound.empty() && !end.paused) {
        const std::string piece = end.inbound.substr(0, piece_);
        end.inbound.erase(0, piece.size());
        end.listener->OnData(piece);
        return true;
      }
      if (end.inbound.empty() && end.read_end_pending && !end.read_end_done && !end.paused) {
        end.read_end_done = true;
        end.listener->OnReadEnd();
        return true;
      }
      if (end.wants_room && pipe->ends[1 - side].inbound.size() < capacity_) {
        end.wants_room = false;
        end.listener->OnWritable();
        return true;
      }
    }
  }
  return false;
}

bool MemoryNetwork::RunOne() {
  if (!events_.empty()) {
    auto event = std::move(events_.front());
    events_.pop_front();
    event();
    return true;
  }
  return RunStreams();
}

void MemoryNetwork::Run() {
  EndTurn();
  while (RunOne()) EndTurn();
  std::erase_if(pipes_, [](const auto& pipe) { return pipe->ends[0].destroyed && pipe->ends[1].destroyed; });
}

void MemoryNetwork::FireTimers() {
  for (MemoryTimer* timer : std::vector(timers_)) {
    if (std::find(timers_.begin(), timers_.end(), timer) != timers_.end() && timer->armed && timer->deadline <= now_) {
      timer->Fire();
      EndTurn();
    }
  }
}

void MemoryNetwork::Advance(Duration duration) {
  const Instant until = now_ + duration;
  Run();
  while (true) {
    Instant next = until;
    for (const MemoryTimer* timer : timers_) {
      if (timer->armed) next = std::min(next, std::max(timer->deadline, now_));
    }
    now_ = next;
    FireTimers();
    Run();
    const bool is_due = std::any_of(timers_.begin(), timers_.end(), [&](const MemoryTimer* timer) { return timer->armed && timer->deadline <= now_; });
    if (now_ >= until && !is_due) return;
  }
}

}  // namespace detcd
