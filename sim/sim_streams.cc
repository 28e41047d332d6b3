#include "sim/sim_streams.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "sim/stream_handles.h"

namespace detcd::sim {
namespace {

constexpr uint32_t kLossesMax = 6;  // consecutive losses of one segment after which the connection is cut

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

}  // namespace

std::string EndpointHost(EndpointId endpoint) {
  const uint32_t number = endpoint + 1;
  return "10." + std::to_string(number >> 16 & 255) + "." + std::to_string(number >> 8 & 255) + "." +
         std::to_string(number & 255);
}

SimStreams::SimStreams(SimContext& context, Links& links, Inboxes& inboxes, const StreamKnobs& knobs)
    : context_(context),
      links_(links),
      inboxes_(inboxes),
      knobs_(knobs),
      random_(context.Random("sim/streams")),
      next_port_(links.endpoints(), kFirstPort) {}

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
  links_.CountHeld(from, to, context_.effects.OnWay(from, to));
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
  const Effects effects = context_.effects.OnWay(from, to);
  law.CountDelay(delay, effects);
  at = law.Unclogged(at, context_.queue.now(), effects);
  const auto reset_instead = [&] {
    kind = EventKind::kReset;
    value = static_cast<uint64_t>(IoError::kReset);
    context_.queue.Push(at, to_end, {.kind = kind, .target = from, .subject = Other(to_end), .value = value});
  };
  if (law.flip_permille > 0 && kind == EventKind::kData && random_.Chance(law.flip_permille, 1000)) {
    effects.Effective(FaultKind::kBitFlip, Nanos(at - context_.queue.now()));
    reset_instead();
  }
  if (law.segment_loss_permille > 0) {
    uint32_t losses = 0;
    while (losses < kLossesMax && random_.Chance(law.segment_loss_permille, 1000)) ++losses;
    at += knobs_.retransmit_first.nanos * ((int64_t{1} << losses) - 1);
    if (losses > 0) effects.Effective(FaultKind::kSegmentLoss, Nanos(at - context_.queue.now()));
    if (losses == kLossesMax) {
      PROBE("sim.loss_became_reset");
      reset_instead();
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
    context_.effects.OnWay(first, second).Effective(FaultKind::kStreamReset);
    for (uint32_t side = 0; side < 2; ++side) {
      Close(connection, EndId(connection.generation, slot, side), IoError::kReset);
    }
  }
}

void SimStreams::CutAt(EndpointId endpoint, EndpointId other) {
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    Connection& connection = connections_[slot];
    for (uint32_t side = 0; side < 2; ++side) {
      End& end = connection.ends[side];
      const End& far = connection.ends[side ^ 1];
      if (!connection.used || end.endpoint != endpoint || far.endpoint != other) continue;
      if (!end.connected || end.closed || end.gone || far.closed || far.gone) continue;
      context_.effects.At(other).Effective(FaultKind::kHalfOpen);
      Close(connection, EndId(connection.generation, slot, side), IoError::kReset);
    }
  }
}

}  // namespace detcd::sim
