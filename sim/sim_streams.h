// Byte streams between endpoints, with TCP's promise: bytes arrive in order and unaltered or not at all.
//
//   - Each direction holds at most `buffer_bytes` that its reader has not taken: beyond that Write takes nothing until
//     news of room has travelled back. Writes are cut and deliveries are cut as the seed says.
//   - Loss is a retransmission delay, doubled each time, and in the end a reset. A blocked link or a dead machine holds
//     bytes in the same way; after `user_timeout` the writer hears kTimedOut and the other side nothing (half open).
//   - Nothing is heard of a machine without power. Of a process that ended, its kernel tells with a reset, which a
//     blocked link swallows; who writes to the dead end later is reset then.
//   - Connecting: refused where nobody listens, tried again where the accept queue is full or the path is blocked,
//     kTimedOut after `connect_timeout`, kUnreachable for an address that nobody has.
//
// Endpoint e has the address 10.x.y.z with e + 1 = x * 65536 + y * 256 + z; 127.0.0.1 and ::1 are the endpoint itself,
// 0.0.0.0 and :: listen on both. A Unix socket is a path within the endpoint.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/io/streams.h"
#include "sim/inbox.h"
#include "sim/links.h"

namespace detcd::sim {

struct StreamKnobs {
  uint64_t buffer_bytes = 65'536;          // of one direction, both kernels' together
  uint64_t delivery_bytes_max = 16'384;    // the largest piece handed to a listener
  uint32_t partial_write_permille = 50;    // writes that take less than there is room for
  uint32_t short_delivery_permille = 200;  // deliveries cut at a random place
  uint32_t accept_queue_max = 128;
  Duration retransmit_first = Millis(200);
  Duration retransmit_max = Seconds(5);
  Duration user_timeout = Seconds(20);
  Duration connect_timeout = Seconds(10);
};

std::string EndpointHost(EndpointId endpoint);

class SimStream;
class SimAcceptor;

class SimStreams {
 public:
  SimStreams(SimContext& context, Links& links, Inboxes& inboxes, const StreamKnobs& knobs);
  SimStreams(const SimStreams&) = delete;

  ListenResult Listen(EndpointId endpoint, const Address& address, AcceptListener& listener);
  std::unique_ptr<Stream> Connect(EndpointId endpoint, const Address& address, StreamListener& listener);

  void OnEvent(const Event& event);
  // Runs an inbox item of a stream or an acceptor; false when it means nothing any more.
  bool Deliver(const InboxItem& item);

  // Ends all that the endpoint has; handles that are left are dead. `silent`: no word to the other sides. Whether there
  // was a connection.
  bool EndEndpoint(EndpointId endpoint, bool silent);
  // Cuts every connection between the two, both sides hearing kReset.
  void ResetBetween(EndpointId a, EndpointId b);
  // Cuts every connection between the two at `endpoint`: `other` hears of it when it next writes.
  void CutAt(EndpointId endpoint, EndpointId other);
  size_t connections() const { return connections_.size() - free_.size(); }

 private:
  friend class SimStream;
  friend class SimAcceptor;

  // Bytes from one end to the other. consumed <= arrived <= written, window <= consumed.
  struct Direction {
    std::deque<Bytes> bytes;     // taken from the writer, not yet consumed
    size_t front_offset = 0;     // of bytes.front(), consumed already
    uint64_t written = 0;
    uint64_t arrived = 0;
    uint64_t consumed = 0;
    uint64_t window = 0;         // what the writer knows of `consumed`
    uint64_t announced = 0;      // what was last sent to it
    bool fin_sent = false;
    bool fin_arrived = false;
    bool fin_delivered = false;
    bool wants_room = false;     // a Write took less than all
    bool stalled = false;        // the path is blocked: held_* wait for a retry
    uint64_t held_bytes = 0;
    bool held_fin = false;
    int64_t stalled_since = 0;
    int64_t window_since = -1;   // since when news of room cannot get through
    Duration retransmit;
    int64_t last_arrival = 0;
  };
  struct End {
    EndpointId endpoint = 0;
    SimStream* stream = nullptr;
    StreamListener* listener = nullptr;
    Address remote;
    bool connected = false;
    bool paused = false;
    bool closed = false;       // dead: OnClosed is on its way or was heard
    bool gone = false;         // nobody holds this end any more
    bool data_queued = false;  // an inbox item waits
    bool writable_queued = false;
    IoError error = IoError::kOk;
  };
  struct Connection {
    uint32_t generation = 1;
    bool used = false;
    int64_t connect_since = 0;
    Address to;
    End ends[2];              // 0 connected, 1 listened
    Direction directions[2];  // [i] carries bytes written by ends[i]
  };
  struct Acceptor {
    uint32_t generation = 1;
    EndpointId endpoint = 0;
    Address address;
    AcceptListener* listener = nullptr;
    SimAcceptor* handle = nullptr;  // null: free
    std::deque<uint64_t> queue;     // ends not yet accepted
    bool paused = false;
    bool queued = false;
  };

  // An end as one word: generation, slot and side.
  static uint64_t EndId(uint32_t generation, uint32_t slot, uint32_t side) {
    return uint64_t{generation} << 32 | uint64_t{slot} << 1 | side;
  }
  Connection* Find(uint64_t end_id);
  static uint32_t Side(uint64_t end_id) { return end_id & 1; }
  static uint64_t Other(uint64_t end_id) { return end_id ^ 1; }
  End& EndOf(Connection& connection, uint64_t end_id) { return connection.ends[Side(end_id)]; }
  Direction& Outgoing(Connection& connection, uint64_t end_id) { return connection.directions[Side(end_id)]; }
  Direction& Incoming(Connection& connection, uint64_t end_id) { return connection.directions[Side(end_id) ^ 1]; }
  uint64_t Make(EndpointId from, EndpointId to, const Address& address);
  void FreeIfGone(Connection& connection, uint64_t end_id);

  size_t Write(uint64_t end_id, std::span<const Bytes> pieces);
  void CloseWrite(uint64_t end_id);
  void SetPaused(uint64_t end_id, bool paused);
  void SetListener(uint64_t end_id, StreamListener& listener);
  void Destroy(uint64_t end_id);

  void Send(EventKind kind, uint64_t to_end, uint64_t value, int64_t departure, uint64_t fingerprint);
  void SendReset(Connection& connection, uint64_t from_end, IoError error);
  void Announce(Connection& connection, uint64_t reader_end);
  void Arrive(Connection& connection, uint64_t end_id, uint64_t bytes, bool fin);
  void Received(Connection& connection, uint64_t end_id, uint64_t bytes, bool fin);
  void Retry(Connection& connection, uint64_t end_id);
  void RoomArrived(Connection& connection, const Event& event);
  void ConnectArrived(Connection& connection, const Event& event);
  void ConnectedArrived(Connection& connection, const Event& event);
  void TryAgain(Connection& connection, const Event& event);
  void Close(Connection& connection, uint64_t end_id, IoError error);
  void QueueData(Connection& connection, uint64_t end_id);
  bool DeliverData(Connection& connection, uint64_t end_id);
  std::string_view Take(Direction& direction, uint64_t size, Bytes& keep);
  bool IsCut(EndpointId from, EndpointId to) const;
  // What was sent did not arrive, because the way is cut.
  void CountHeld(EndpointId from, EndpointId to);

  Acceptor* FindAcceptor(uint64_t id);
  Acceptor* FindListening(EndpointId endpoint, const Address& address);
  void QueueAccept(Acceptor& acceptor);
  bool DeliverAccept(uint64_t acceptor_id);
  void SetAcceptPaused(uint64_t acceptor_id, bool paused);
  void CloseAcceptor(uint64_t acceptor_id);

  SimContext& context_;
  Links& links_;
  Inboxes& inboxes_;
  StreamKnobs knobs_;
  KeyedRandom random_;
  std::deque<Connection> connections_;  // stable addresses: listeners connect from inside events
  std::vector<uint32_t> free_;
  std::deque<Acceptor> acceptors_;
  std::vector<uint16_t> next_port_;  // by endpoint
  std::string scratch_;              // a delivery that spans several written pieces
};

}  // namespace detcd::sim
