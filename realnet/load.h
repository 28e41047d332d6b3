// Load on an etcd-compatible service: puts, ranges or transactions over a number of connections, each with its share of
// the requests in flight. In a closed loop the next request goes out when one has ended; at a given rate (open loop) when
// it is due, and it waits from then on, whether the servers keep up or not. Every answer is checked; what is not a good
// answer never counts as one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/host.h"
#include "core/wire/url.h"
#include "realnet/histogram.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace etcdserverpb {
class PutRequest;
class RangeRequest;
class TxnRequest;
}  // namespace etcdserverpb

namespace detcd::realnet {

struct LoadOptions {
  // A transaction puts its key if there is one, as a guarded update does, and else reads it.
  enum class Kind : uint8_t { kPut, kRange, kTxn };
  Kind kind = Kind::kPut;
  std::vector<wire::Url> endpoints;  // connection i goes to endpoint i modulo their number, and to the next when lost
  uint32_t connections = 1;
  uint32_t in_flight = 1;  // requests under way over all connections; at least one per connection
  uint64_t rate = 0;       // requests a second, as far as `in_flight` allows; 0: a closed loop
  uint64_t total = 0;      // requests to send; 0: until `duration` has passed
  Duration duration = Seconds(5);
  Duration timeout = Seconds(10);  // of one request
  uint64_t key_space = 10'000;     // keys are numbers below this: at random, or in order
  bool sequential = false;
  size_t value_bytes = 100;   // of puts and transactions
  bool serializable = false;  // ranges that need no quorum
};

struct LoadResult {
  Duration elapsed;                        // from the first request to the last answer
  uint64_t good = 0;                       // answers without an error and with a revision
  uint64_t missing = 0;                    // good answers to ranges and transactions that found no key
  std::map<std::string, uint64_t> errors;  // by `CODE text`
  uint64_t reconnects = 0;
  Duration longest_gap;  // without a good answer, from the first request on
  Histogram latencies;   // of good answers, in microseconds; at a rate counted from when the request was due

  uint64_t error_count() const {
    uint64_t count = 0;
    for (const auto& [text, n] : errors) count += n;
    return count;
  }
};

// One run. Stops the host at its end.
class Load final : private TurnListener, private TimerListener {
 public:
  Load(Host& host, const LoadOptions& options);
  ~Load();

  void Start();
  const LoadResult& result() const { return result_; }

 private:
  class Connection;
  friend class Connection;

  void OnEndTurn() override;
  void OnTimer(uint64_t token) override;

  bool MayStart(Instant now) const;
  // Whether more will be started, now or later.
  bool GoesOn(Instant now) const;
  // When the next request is due, at a rate.
  Instant NextDue() const;
  // The next request goes out on `connection`.
  void StartOne(Connection& connection);
  void OnGood(Duration latency, bool missing);
  void OnError(std::string text);
  void FinishIfDone();
  const std::string& NextKey();
  const google::protobuf::Message& NextRequest();

  Host& host_;
  const LoadOptions options_;
  KeyedRandom random_;
  std::unique_ptr<etcdserverpb::PutRequest> put_;
  std::unique_ptr<etcdserverpb::RangeRequest> range_;
  std::unique_ptr<etcdserverpb::TxnRequest> txn_;
  std::string key_;
  std::unique_ptr<Timer> limit_timer_;
  std::unique_ptr<Timer> due_timer_;
  std::vector<std::unique_ptr<Connection>> connections_;
  size_t next_ = 0;  // the connection whose turn it is
  uint64_t started_ = 0;
  uint64_t ended_ = 0;
  std::optional<Instant> begin_;  // of the first request
  Instant last_good_;
  bool done_ = false;
  LoadResult result_;
};

}  // namespace detcd::realnet
