// Bytes on their way: from a Write through the path to the reader, and the news of room back.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "sim/sim_streams.h"

namespace detcd::sim {
namespace {

constexpr Duration kPartialWriteWait = Micros(50);

}  // namespace

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
  const int64_t drawn = inboxes_.TrueNow(reader) + DrawDelay(law.delay, random_).nanos;
  const int64_t at = law.Unclogged(drawn, context_.queue.now(), context_.effects.OnWay(reader, writer));
  context_.queue.Push(at, Other(reader_end),
                      {.kind = EventKind::kWindow, .target = writer, .subject = Other(reader_end), .value = in.consumed});
}

}  // namespace detcd::sim
