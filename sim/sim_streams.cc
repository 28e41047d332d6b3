#include "sim/sim_streams.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::sim {
namespace {

constexpr uint16_t kFirstPort = 32'768;
constexpr uint32_t kLossesMax = 6;  // consecutive losses of one segment after which the connection is cut
constexpr Duration kPartialWriteWait = Micros(50);

std::optional<EndpointId> ParseHost(std::string_view host) {
  uint32_t parts[4] = {};
  const char* next = host.data();
  const char* end = next + host.size();
  for (int i = 0; i < 4; ++i) {
    const auto [stop, error] = std::from_chars(next, end, parts[i]);
    if (error != std::errc() || parts[i] > 255) return std::nullopt;
    next = stop;
    if (i < 3 && (next == end || *next++ != '.')) return std::nullopt;
  }
  const uint32_t number = parts[1] << 16 | parts[2] << 8 | parts[3];
  if (next != end || parts[0] != 10 || number == 0) return std::nullopt;
  return number - 1;
}

bool IsLoopback(std::string_view host) { return host == "127.0.0.1" || host == "::1"; }
bool IsWildcard(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

// Whether a connection to `to` reaches who listens on `on`; both of one endpoint.
bool Reaches(const Address& to, const Address& on) {
  if (to.is_unix != on.is_unix || to.port != on.port) return false;
  return to.host == on.host || (!on.is_unix && IsWildcard(on.host));
}

bool Overlap(const Address& a, const Address& b) { return Reaches(a, b) || Reaches(b, a); }

}  // namespace

std::string EndpointHost(EndpointId endpoint) {
  const uint32_t number = endpoint + 1;
  return "10." + std::to_string(number >> 16 & 255) + "." + std::to_string(number >> 8 & 255) + "." +
         std::to_string(number & 255);
}

class SimStream final : public Stream {
 public:
  SimStream(SimStreams* streams, uint64_t end_id, Address remote)
      : streams_(streams), end_id_(end_id), remote_(std::move(remote)) {}
  ~SimStream() override {
    if (streams_ != nullptr) streams_->Destroy(end_id_);
  }
  void SetListener(StreamListener& listener) override {
    if (streams_ != nullptr) streams_->SetListener(end_id_, listener);
  }
  size_t Write(std::span<const Bytes> pieces) override {
    return streams_ == nullptr ? 0 : streams_->Write(end_id_, pieces);
  }
  void CloseWrite() override {
    if (streams_ != nullptr) streams_->CloseWrite(end_id_);
  }
  void PauseReading() override {
    if (streams_ != nullptr) streams_->SetPaused(end_id_, true);
  }
  void ResumeReading() override {
    if (streams_ != nullptr) streams_->SetPaused(end_id_, false);
  }
  Address Remote() const override { return remote_; }

  // After this the handle does nothing: its incarnation has ended.
  void Detach() { streams_ = nullptr; }

 private:
  SimStreams* streams_;
  uint64_t end_id_;
  Address remote_;
};

class SimAcceptor final : public detcd::Acceptor {
 public:
  SimAcceptor(SimStreams* streams, uint64_t id, Address local)
      : streams_(streams), id_(id), local_(std::move(local)) {}
  ~SimAcceptor() override {
    if (streams_ != nullptr) streams_->CloseAcceptor(id_);
  }
  Address Local() const override { return local_; }
  void PauseAccepting() override {
    if (streams_ != nullptr) streams_->SetAcceptPaused(id_, true);
  }
  void ResumeAccepting() override {
    if (streams_ != nullptr) streams_->SetAcceptPaused(id_, false);
  }
  void Detach() { streams_ = nullptr; }

 private:
  SimStreams* streams_;
  uint64_t id_;
  Address local_;
};

SimStreams::SimStreams(SimContext& context, Links& links, Inboxes& inboxes, const StreamKnobs& knobs)
    : context_(context),
      links_(links),
      inboxes_(inboxes),
      knobs_(knobs),
      random_(context.Random("sim/streams")),
      next_port_(links.endpoints(), kFirstPort) {}

std::optional<EndpointId> SimStreams::FindName(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

// --- Connections ---

SimStreams::Connection* SimStreams::Find(uint64_t end_id) {
  const auto slot = static_cast<uint32_t>(end_id) >> 1;
  if (slot >= connections_.size()) return nullptr;
  Connection& connection = connections_[slot];
  return connection.used && connection.generation == end_id >> 32 ? &connection : nullptr;
}

uint64_t SimStreams::Make(EndpointId from, EndpointId to, const Address& address) {
  uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(connections_.size());
    connections_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Connection& connection = connections_[slot];
  connection.used = true;
  connection.to = address;
  connection.connect_since = context_.queue.now();
  connection.ends[0].endpoint = from;
  connection.ends[0].remote = address;
  connection.ends[1].endpoint = to;
  connection.ends[1].remote = {.host = EndpointHost(from), .port = static_cast<uint16_t>(kFirstPort + slot % 30'000)};
  connection.ends[1].gone = true;  // until it is in an accept queue
  for (Direction& direction : connection.directions) direction.retransmit = knobs_.retransmit_first;
  return EndId(connection.generation, slot, 0);
}

void SimStreams::FreeIfGone(Connection& connection, uint64_t end_id) {
  if (!connection.ends[0].gone || !connection.ends[1].gone) return;
  const uint32_t generation = connection.generation + 1;
  connection = Connection();
  connection.generation = generation;
  free_.push_back(static_cast<uint32_t>(end_id) >> 1);
}

std::unique_ptr<Stream> SimStreams::Connect(EndpointId endpoint, const Address& address, StreamListener& listener) {
  const bool local = address.is_unix || IsLoopback(address.host) || IsWildcard(address.host);
  const std::optional<EndpointId> to = local ? std::optional(endpoint) : ParseHost(address.host);
  const bool reachable = to.has_value() && *to < links_.endpoints();
  const uint64_t id = Make(endpoint, reachable ? *to : endpoint, address);
  Connection& connection = *Find(id);
  auto stream = std::make_unique<SimStream>(this, id, address);
  connection.ends[0].stream = stream.get();
  connection.ends[0].listener = &listener;
  if (reachable) {
    Send(EventKind::kConnect, Other(id), 0, inboxes_.TrueNow(endpoint), address.port);
  } else {
    Close(connection, id, IoError::kUnreachable);
  }
  return stream;
}

bool SimStreams::IsCut(EndpointId from, EndpointId to) const {
  return links_.IsBlocked(from, to) || inboxes_.State(to) == MachineState::kMachineDown;
}

void SimStreams::CountHeld(EndpointId from, EndpointId to) {
  links_.CountHeld(from, to, context_.effects);
  if (inboxes_.State(to) != MachineState::kUp) inboxes_.OnMissed(to);
}

void SimStreams::Send(EventKind kind, uint64_t to_end, uint64_t value, int64_t departure, uint64_t fingerprint) {
  Connection& connection = *Find(to_end);
  const EndpointId to = EndOf(connection, to_end).endpoint;
  const EndpointId from = EndOf(connection, Other(to_end)).endpoint;
  Direction& direction = Incoming(connection, to_end);
  const LinkLaw& law = links_.Law(from, to);
  const Duration delay = DrawDelay(law.delay, random_);
  int64_t at = departure + delay.nanos;
  law.CountDelay(delay, context_.effects);
  if (law.segment_loss_permille > 0) {
    uint32_t losses = 0;
    while (losses < kLossesMax && random_.Chance(law.segment_loss_permille, 1000)) ++losses;
    at += knobs_.retransmit_first.nanos * ((int64_t{1} << losses) - 1);
    if (losses > 0) context_.effects.Effective(FaultKind::kSegmentLoss);
    if (losses == kLossesMax) {
      PROBE("sim.loss_became_reset");
      kind = EventKind::kReset;
      value = static_cast<uint64_t>(IoError::kReset);
      context_.queue.Push(at, to_end, {.kind = kind, .target = from, .subject = Other(to_end), .value = value});
    }
  }
  at = std::max(at, direction.last_arrival);
  direction.last_arrival = at;
  context_.queue.Push(at, to_end, {.kind = kind, .target = to, .subject = to_end, .value = value, .fingerprint = fingerprint});
}

void SimStreams::SendReset(Connection& connection, uint64_t from_end, IoError error) {
  Send(EventKind::kReset, Other(from_end), static_cast<uint64_t>(error),
       inboxes_.TrueNow(EndOf(connection, from_end).endpoint), 0);
}

void SimStreams::Close(Connection& connection, uint64_t end_id, IoError error) {
  End& end = EndOf(connection, end_id);
  if (end.closed || end.gone) return;
  end.closed = true;
  end.error = error;
  Incoming(connection, end_id).bytes.clear();
  if (end.listener == nullptr) return;  // told when it gets one
  inboxes_.Enqueue(end.endpoint, {.kind = ItemKind::kStreamClosed, .subject = end_id});
}

void SimStreams::OnEvent(const Event& event) {
  Connection* connection = Find(event.subject);
  if (connection == nullptr) return;
  switch (event.kind) {
    case EventKind::kConnect:
      return ConnectArrived(*connection, event);
    case EventKind::kConnected:
      return ConnectedArrived(*connection, event);
    case EventKind::kData:
      return Arrive(*connection, event.subject, event.value, false);
    case EventKind::kFin:
      return Arrive(*connection, event.subject, 0, true);
    case EventKind::kRetry:
      return Retry(*connection, event.subject);
    case EventKind::kWindow:
      return RoomArrived(*connection, event);
    case EventKind::kReset: {
      const EndpointId from = EndOf(*connection, Other(event.subject)).endpoint;
      if (links_.IsBlocked(from, event.target)) {
        CountHeld(from, event.target);  // swallowed: the connection is half open
        return;
      }
      return Close(*connection, event.subject, static_cast<IoError>(event.value));
    }
    default:
      CHECK_MSG(false, "not an event of a stream");
  }
}

void SimStreams::TryAgain(Connection& connection, const Event& event) {
  const uint64_t client = event.subject & ~uint64_t{1};
  const int64_t waited = context_.queue.now() - connection.connect_since;
  if (waited >= knobs_.connect_timeout.nanos) {
    PROBE("sim.connect_timed_out");
    Close(connection, client, IoError::kTimedOut);
    return;
  }
  Direction& direction = connection.directions[0];
  const Duration wait = std::min(direction.retransmit, Nanos(knobs_.connect_timeout.nanos - waited));
  direction.retransmit = std::min(direction.retransmit * 2, knobs_.retransmit_max);
  context_.queue.Push(context_.queue.now() + wait.nanos, event.subject, event);
}

void SimStreams::ConnectArrived(Connection& connection, const Event& event) {
  const uint64_t server = event.subject;
  const uint64_t client = Other(server);
  End& end = connection.ends[1];
  if (connection.ends[0].gone || connection.ends[0].closed) return FreeIfGone(connection, server);
  const EndpointId from = connection.ends[0].endpoint;
  if (IsCut(from, end.endpoint) || links_.IsBlocked(end.endpoint, from)) {
    CountHeld(from, end.endpoint);
    CountHeld(end.endpoint, from);
    return TryAgain(connection, event);
  }
  const bool up = inboxes_.State(end.endpoint) == MachineState::kUp;
  if (!up) inboxes_.OnMissed(end.endpoint);
  Acceptor* acceptor = up ? FindListening(end.endpoint, connection.to) : nullptr;
  if (acceptor == nullptr) return SendReset(connection, server, IoError::kRefused);
  if (acceptor->queue.size() >= knobs_.accept_queue_max) return TryAgain(connection, event);
  connection.directions[0].retransmit = knobs_.retransmit_first;
  end.gone = false;
  end.connected = true;
  acceptor->queue.push_back(server);
  QueueAccept(*acceptor);
  Send(EventKind::kConnected, client, 0, context_.queue.now(), 0);
}

void SimStreams::ConnectedArrived(Connection& connection, const Event& event) {
  End& end = connection.ends[0];
  if (end.gone || end.closed) return;
  if (links_.IsBlocked(connection.ends[1].endpoint, end.endpoint)) {
    CountHeld(connection.ends[1].endpoint, end.endpoint);
    return TryAgain(connection, event);
  }
  end.connected = true;
  connection.directions[0].retransmit = knobs_.retransmit_first;
  inboxes_.Enqueue(end.endpoint, {.kind = ItemKind::kStreamConnected, .subject = event.subject});
  QueueData(connection, event.subject);
}

// --- The writing side ---

size_t SimStreams::Write(uint64_t end_id, std::span<const Bytes> pieces) {
  Connection* connection = Find(end_id);
  if (connection == nullptr) return 0;
  End& end = EndOf(*connection, end_id);
  Direction& out = Outgoing(*connection, end_id);
  if (!end.connected || end.closed || out.fin_sent) return 0;
  uint64_t total = 0;
  for (const Bytes& piece : pieces) total += piece.size();
  if (total == 0) return 0;
  const uint64_t room = knobs_.buffer_bytes - (out.written - out.window);
  uint64_t take = std::min(total, room);
  const bool partial = take > 0 && knobs_.partial_write_permille > 0 && random_.Chance(knobs_.partial_write_permille, 1000);
  if (partial) take = random_.Below(take);
  const int64_t departure = inboxes_.TrueNow(end.endpoint);
  uint64_t rest = take;
  Digest fingerprint;
  for (const Bytes& piece : pieces) {
    const uint64_t part = std::min<uint64_t>(rest, piece.size());
    if (part == 0) continue;
    out.bytes.push_back(piece.Slice(0, part));
    fingerprint.AddBytes(out.bytes.back().view());
    rest -= part;
  }
  out.written += take;
  if (take > 0) Send(EventKind::kData, Other(end_id), take, departure, fingerprint.value());
  if (take < total) {
    out.wants_room = true;
    if (take < room) {
      // There was room: say so as a kernel does that was short of memory for a moment.
      context_.queue.Push(departure + kPartialWriteWait.nanos, end_id,
                          {.kind = EventKind::kWindow, .target = end.endpoint, .subject = end_id, .value = out.window});
    } else if (out.consumed > out.announced) {
      Announce(*connection, Other(end_id));
    }
  }
  return take;
}

void SimStreams::CloseWrite(uint64_t end_id) {
  Connection* connection = Find(end_id);
  if (connection == nullptr) return;
  End& end = EndOf(*connection, end_id);
  Direction& out = Outgoing(*connection, end_id);
  if (out.fin_sent || end.closed || !end.connected) return;
  out.fin_sent = true;
  Send(EventKind::kFin, Other(end_id), 0, inboxes_.TrueNow(end.endpoint), 0);
}

void SimStreams::RoomArrived(Connection& connection, const Event& event) {
  const uint64_t writer = event.subject;
  End& end = EndOf(connection, writer);
  Direction& out = Outgoing(connection, writer);
  if (end.closed || end.gone) return;
  const EndpointId reader = EndOf(connection, Other(writer)).endpoint;
  if (event.value > out.window) {
    const int64_t now = context_.queue.now();
    if (links_.IsBlocked(reader, end.endpoint)) {
      CountHeld(reader, end.endpoint);
      if (out.window_since < 0) out.window_since = now;
      if (now - out.window_since >= knobs_.user_timeout.nanos) {
        PROBE("sim.stream_timed_out");
        return Close(connection, writer, IoError::kTimedOut);
      }
      context_.queue.Push(now + knobs_.retransmit_first.nanos, writer, event);
      return;
    }
    out.window = event.value;
    out.window_since = -1;
  }
  const bool room = out.written - out.window < knobs_.buffer_bytes;
  if (!out.wants_room || !room || end.writable_queued || end.listener == nullptr) return;
  end.writable_queued = true;
  inboxes_.Enqueue(end.endpoint, {.kind = ItemKind::kStreamWritable, .subject = writer});
}

// --- The reading side ---

void SimStreams::Arrive(Connection& connection, uint64_t end_id, uint64_t bytes, bool fin) {
  Direction& in = Incoming(connection, end_id);
  const EndpointId to = EndOf(connection, end_id).endpoint;
  const EndpointId from = EndOf(connection, Other(end_id)).endpoint;
  if (!in.stalled && !IsCut(from, to)) return Received(connection, end_id, bytes, fin);
  CountHeld(from, to);
  in.held_bytes += bytes;
  in.held_fin |= fin;
  if (in.stalled) return;
  in.stalled = true;
  in.stalled_since = context_.queue.now();
  context_.queue.Push(context_.queue.now() + in.retransmit.nanos, end_id,
                      {.kind = EventKind::kRetry, .target = to, .subject = end_id});
}

void SimStreams::Retry(Connection& connection, uint64_t end_id) {
  Direction& in = Incoming(connection, end_id);
  if (!in.stalled) return;
  const EndpointId to = EndOf(connection, end_id).endpoint;
  const EndpointId from = EndOf(connection, Other(end_id)).endpoint;
  const int64_t now = context_.queue.now();
  if (IsCut(from, to)) {
    if (now - in.stalled_since >= knobs_.user_timeout.nanos) {
      PROBE("sim.stream_timed_out");
      return Close(connection, Other(end_id), IoError::kTimedOut);
    }
    in.retransmit = std::min(in.retransmit * 2, knobs_.retransmit_max);
    context_.queue.Push(now + in.retransmit.nanos, end_id,
                        {.kind = EventKind::kRetry, .target = to, .subject = end_id});
    return;
  }
  in.stalled = false;
  in.retransmit = knobs_.retransmit_first;
  const uint64_t bytes = std::exchange(in.held_bytes, 0);
  const bool fin = std::exchange(in.held_fin, false);
  Received(connection, end_id, bytes, fin);
}

void SimStreams::Received(Connection& connection, uint64_t end_id, uint64_t bytes, bool fin) {
  End& end = EndOf(connection, end_id);
  if (end.gone || end.closed) {
    if (bytes > 0) SendReset(connection, end_id, IoError::kReset);
    return;
  }
  Direction& in = Incoming(connection, end_id);
  in.arrived += bytes;
  in.fin_arrived |= fin;
  CHECK(in.arrived <= in.written);
  QueueData(connection, end_id);
}

void SimStreams::QueueData(Connection& connection, uint64_t end_id) {
  End& end = EndOf(connection, end_id);
  const Direction& in = Incoming(connection, end_id);
  const bool something = in.arrived > in.consumed || (in.fin_arrived && !in.fin_delivered);
  if (!something || !end.connected || end.data_queued || end.paused || end.closed || end.listener == nullptr) return;
  end.data_queued = true;
  inboxes_.Enqueue(end.endpoint, {.kind = ItemKind::kStreamData, .subject = end_id});
}

std::string_view SimStreams::Take(Direction& direction, uint64_t size, Bytes& keep) {
  const std::string_view front = direction.bytes.front().view().substr(direction.front_offset);
  if (front.size() >= size) {
    keep = direction.bytes.front();
    direction.front_offset += size;
    if (direction.front_offset == keep.size()) {
      direction.bytes.pop_front();
      direction.front_offset = 0;
    }
    return front.substr(0, size);
  }
  scratch_.clear();
  while (scratch_.size() < size) {
    const Bytes& piece = direction.bytes.front();
    const size_t part = std::min<size_t>(size - scratch_.size(), piece.size() - direction.front_offset);
    scratch_.append(piece.data() + direction.front_offset, part);
    direction.front_offset += part;
    if (direction.front_offset < piece.size()) break;
    direction.bytes.pop_front();
    direction.front_offset = 0;
  }
  return scratch_;
}

bool SimStreams::DeliverData(Connection& connection, uint64_t end_id) {
  End& end = EndOf(connection, end_id);
  end.data_queued = false;
  if (end.paused || end.closed || end.gone) return false;
  Direction& in = Incoming(connection, end_id);
  StreamListener& listener = *end.listener;
  if (in.arrived == in.consumed) {
    if (!in.fin_arrived || in.fin_delivered) return false;
    in.fin_delivered = true;
    listener.OnReadEnd();
    return true;
  }
  uint64_t size = std::min(in.arrived - in.consumed, knobs_.delivery_bytes_max);
  const bool cut = knobs_.short_delivery_permille > 0 && random_.Chance(knobs_.short_delivery_permille, 1000);
  if (cut) size = random_.Between(uint64_t{1}, size);
  Bytes keep;
  const std::string_view view = Take(in, size, keep);
  in.consumed += size;
  const bool far_behind = in.consumed - in.announced >= knobs_.buffer_bytes / 4;
  if (in.wants_room || far_behind) Announce(connection, end_id);
  QueueData(connection, end_id);
  listener.OnData(view);  // may destroy the stream: nothing of the connection is touched after this
  return true;
}

void SimStreams::Announce(Connection& connection, uint64_t reader_end) {
  Direction& in = Incoming(connection, reader_end);
  in.announced = in.consumed;
  const EndpointId reader = EndOf(connection, reader_end).endpoint;
  const EndpointId writer = EndOf(connection, Other(reader_end)).endpoint;
  const LinkLaw& law = links_.Law(reader, writer);
  const int64_t at = inboxes_.TrueNow(reader) + DrawDelay(law.delay, random_).nanos;
  context_.queue.Push(at, Other(reader_end),
                      {.kind = EventKind::kWindow, .target = writer, .subject = Other(reader_end), .value = in.consumed});
}

bool SimStreams::Deliver(const InboxItem& item) {
  if (item.kind == ItemKind::kAccept) return DeliverAccept(item.subject);
  Connection* connection = Find(item.subject);
  if (connection == nullptr) return false;
  End& end = EndOf(*connection, item.subject);
  if (end.gone) return false;
  switch (item.kind) {
    case ItemKind::kStreamConnected:
      if (end.closed) return false;
      end.listener->OnConnected();
      return true;
    case ItemKind::kStreamData:
      return DeliverData(*connection, item.subject);
    case ItemKind::kStreamWritable:
      end.writable_queued = false;
      if (end.closed) return false;
      Outgoing(*connection, item.subject).wants_room = false;
      end.listener->OnWritable();
      return true;
    case ItemKind::kStreamClosed:
      end.listener->OnClosed(end.error);
      return true;
    default:
      CHECK_MSG(false, "not an item of a stream");
  }
  return false;
}

void SimStreams::SetPaused(uint64_t end_id, bool paused) {
  Connection* connection = Find(end_id);
  if (connection == nullptr) return;
  EndOf(*connection, end_id).paused = paused;
  if (!paused) QueueData(*connection, end_id);
}

void SimStreams::SetListener(uint64_t end_id, StreamListener& listener) {
  Connection* connection = Find(end_id);
  if (connection == nullptr) return;
  End& end = EndOf(*connection, end_id);
  CHECK_MSG(end.listener == nullptr, "a stream's listener is named once");
  end.listener = &listener;
  if (end.closed) {
    inboxes_.Enqueue(end.endpoint, {.kind = ItemKind::kStreamClosed, .subject = end_id});
  } else {
    QueueData(*connection, end_id);
  }
}

// --- Ends ---

void SimStreams::Destroy(uint64_t end_id) {
  Connection* connection = Find(end_id);
  if (connection == nullptr) return;
  End& end = EndOf(*connection, end_id);
  const bool heard = !EndOf(*connection, Other(end_id)).gone;
  if (heard && !end.closed && !Outgoing(*connection, end_id).fin_sent) {
    SendReset(*connection, end_id, IoError::kReset);
  }
  end.gone = true;
  end.stream = nullptr;
  end.listener = nullptr;
  Incoming(*connection, end_id).bytes.clear();
  FreeIfGone(*connection, end_id);
}

bool SimStreams::EndEndpoint(EndpointId endpoint, bool silent) {
  bool any = false;
  for (Acceptor& acceptor : acceptors_) {
    if (acceptor.handle == nullptr || acceptor.endpoint != endpoint) continue;
    acceptor.handle->Detach();
    const uint32_t generation = acceptor.generation + 1;
    acceptor = Acceptor();
    acceptor.generation = generation;
  }
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    for (uint32_t side = 0; side < 2; ++side) {
      Connection& connection = connections_[slot];
      End& end = connection.ends[side];
      if (!connection.used || end.endpoint != endpoint || end.gone) continue;
      const uint64_t id = EndId(connection.generation, slot, side);
      any |= !end.closed;
      if (end.stream != nullptr) end.stream->Detach();
      const bool tell = !silent && !end.closed && !connection.ends[side ^ 1].gone;
      if (tell) SendReset(connection, id, IoError::kReset);
      end.gone = true;
      end.stream = nullptr;
      end.listener = nullptr;
      FreeIfGone(connection, id);
    }
  }
  return any;
}

void SimStreams::ResetBetween(EndpointId a, EndpointId b) {
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    Connection& connection = connections_[slot];
    const EndpointId first = connection.ends[0].endpoint;
    const EndpointId second = connection.ends[1].endpoint;
    if (!connection.used || !((first == a && second == b) || (first == b && second == a))) continue;
    context_.effects.Effective(FaultKind::kStreamReset);
    for (uint32_t side = 0; side < 2; ++side) {
      Close(connection, EndId(connection.generation, slot, side), IoError::kReset);
    }
  }
}

// --- Listening ---

ListenResult SimStreams::Listen(EndpointId endpoint, const Address& address, AcceptListener& listener) {
  Address local = address;
  if (!local.is_unix && !IsLoopback(local.host) && !IsWildcard(local.host) && local.host != EndpointHost(endpoint)) {
    return {.error = IoError::kInvalid};
  }
  const auto taken = [&] {
    return std::any_of(acceptors_.begin(), acceptors_.end(), [&](const Acceptor& a) {
      return a.handle != nullptr && a.endpoint == endpoint && Overlap(a.address, local);
    });
  };
  if (!local.is_unix && local.port == 0) {
    do {
      local.port = next_port_[endpoint]++;
      if (next_port_[endpoint] < kFirstPort) next_port_[endpoint] = kFirstPort;
    } while (taken());
  } else if (taken()) {
    return {.error = IoError::kAddressInUse};
  }
  auto slot = std::find_if(acceptors_.begin(), acceptors_.end(), [](const Acceptor& a) { return a.handle == nullptr; });
  if (slot == acceptors_.end()) slot = acceptors_.emplace(acceptors_.end());
  const auto index = static_cast<uint64_t>(slot - acceptors_.begin());
  slot->endpoint = endpoint;
  slot->address = local;
  slot->listener = &listener;
  auto handle = std::make_unique<SimAcceptor>(this, uint64_t{slot->generation} << 32 | index, local);
  slot->handle = handle.get();
  return {.acceptor = std::move(handle)};
}

SimStreams::Acceptor* SimStreams::FindAcceptor(uint64_t id) {
  const auto index = static_cast<uint32_t>(id);
  if (index >= acceptors_.size()) return nullptr;
  Acceptor& acceptor = acceptors_[index];
  return acceptor.handle != nullptr && acceptor.generation == id >> 32 ? &acceptor : nullptr;
}

SimStreams::Acceptor* SimStreams::FindListening(EndpointId endpoint, const Address& address) {
  for (Acceptor& acceptor : acceptors_) {
    if (acceptor.handle != nullptr && acceptor.endpoint == endpoint && Reaches(address, acceptor.address)) return &acceptor;
  }
  return nullptr;
}

void SimStreams::QueueAccept(Acceptor& acceptor) {
  if (acceptor.queued || acceptor.paused || acceptor.queue.empty()) return;
  acceptor.queued = true;
  const auto found = std::find_if(acceptors_.begin(), acceptors_.end(), [&](const Acceptor& a) { return a.handle == acceptor.handle; });
  const auto index = static_cast<uint64_t>(found - acceptors_.begin());
  inboxes_.Enqueue(acceptor.endpoint, {.kind = ItemKind::kAccept, .subject = uint64_t{acceptor.generation} << 32 | index});
}

bool SimStreams::DeliverAccept(uint64_t acceptor_id) {
  Acceptor* acceptor = FindAcceptor(acceptor_id);
  if (acceptor == nullptr) return false;
  acceptor->queued = false;
  if (acceptor->paused || acceptor->queue.empty()) return false;
  const uint64_t id = acceptor->queue.front();
  acceptor->queue.pop_front();
  QueueAccept(*acceptor);
  Connection* connection = Find(id);
  CHECK(connection != nullptr);
  End& end = EndOf(*connection, id);
  auto stream = std::make_unique<SimStream>(this, id, end.remote);
  end.stream = stream.get();
  acceptor->listener->OnAccept(std::move(stream));
  Connection* after = Find(id);
  if (after != nullptr && !EndOf(*after, id).gone) CHECK_MSG(EndOf(*after, id).listener != nullptr, "accepted, no listener");
  return true;
}

void SimStreams::SetAcceptPaused(uint64_t acceptor_id, bool paused) {
  Acceptor* acceptor = FindAcceptor(acceptor_id);
  if (acceptor == nullptr) return;
  acceptor->paused = paused;
  QueueAccept(*acceptor);
}

void SimStreams::CloseAcceptor(uint64_t acceptor_id) {
  Acceptor* acceptor = FindAcceptor(acceptor_id);
  if (acceptor == nullptr) return;
  const std::deque<uint64_t> waiting = std::move(acceptor->queue);
  const uint32_t generation = acceptor->generation + 1;
  *acceptor = Acceptor();
  acceptor->generation = generation;
  for (const uint64_t id : waiting) Destroy(id);
}

}  // namespace detcd::sim
