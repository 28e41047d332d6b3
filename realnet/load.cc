#include "realnet/load.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/proto/rpc.pb.h"
#include "core/wire/grpc_client.h"

namespace detcd::realnet {
namespace {

constexpr Duration kRedialInterval = Millis(50);
constexpr char kFillByte = 'v';
constexpr Duration kLatePause = Micros(100);
constexpr uint64_t kLimitToken = 0;
constexpr uint64_t kDueToken = 1;

rpc::Method MethodOf(LoadOptions::Kind kind) {
  switch (kind) {
    case LoadOptions::Kind::kPut: return rpc::Method::kPut;
    case LoadOptions::Kind::kRange: return rpc::Method::kRange;
    case LoadOptions::Kind::kTxn: return rpc::Method::kTxn;
  }
  return rpc::Method::kPut;
}

}  // namespace

// One connection with its slots, each of which has one request under way or none. Redials when it is lost.
class Load::Connection final : private wire::GrpcClientListener,
                               private TimerListener,
                               private PostListener,
                               private ResolveListener {
 public:
  Connection(Load& load, size_t endpoint, uint32_t slots)
      : load_(load), endpoint_(endpoint), slots_(slots), redial_timer_(load.host_.clock().NewTimer(*this, 0)) {}

  void Dial() {
    const wire::Url& url = load_.options_.endpoints[endpoint_ % load_.options_.endpoints.size()];
    if (url.IsUnix()) return Connect({.host = url.host, .is_unix = true});
    load_.host_.network().Resolve(url.host, url.port, *this, 0);
  }

  void EndTurn() {
    if (client_ != nullptr && !lost_) client_->EndTurn();
  }

  bool Start(rpc::Method method, const google::protobuf::Message& request, uint32_t slot, Instant due) {
    sent_[slot] = due;
    good_[slot] = false;
    if (client_->Start(method, &request, {.token = slot, .timeout = load_.options_.timeout})) return true;
    Leave();
    return false;
  }

  // Starts the next request if there is a free slot and one may start.
  bool Fill() {
    if (client_ == nullptr || lost_ || leaving_ || !client_->connected() || free_.empty()) return false;
    if (!load_.MayStart(load_.host_.clock().Now())) return false;
    load_.StartOne(*this);
    return true;
  }

  std::optional<uint32_t> TakeSlot() {
    if (free_.empty()) return std::nullopt;
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

 private:
  // Starts no more here; when those under way are over, another connection is made.
  void Leave() {
    if (leaving_) return;
    leaving_ = true;
    client_->Close();
  }

  void Connect(const Address& address) {
    client_ = std::make_unique<wire::GrpcClient>(load_.host_.clock(), static_cast<wire::GrpcClientListener&>(*this));
    lost_ = false;
    leaving_ = false;
    sent_.assign(slots_, Instant());
    good_.assign(slots_, false);
    missing_.assign(slots_, false);
    free_.clear();
    for (uint32_t slot = 0; slot < slots_; ++slot) free_.push_back(slot);
    client_->Attach(load_.host_.network().Connect(address, client_->stream_listener()));
  }

  void OnResolved(uint64_t, IoError error, std::vector<Address> addresses) override {
    if (error != IoError::kOk || addresses.empty()) return Redial();
    // IPv4 first: what `localhost` means to a server.
    std::stable_partition(addresses.begin(), addresses.end(),
                          [](const Address& address) { return address.host.find(':') == std::string::npos; });
    Connect(addresses.front());
  }

  void Redial() {
    ++endpoint_;
    redial_timer_->Arm(load_.host_.clock().Now() + kRedialInterval);
  }

  void OnTimer(uint64_t) override { Dial(); }

  void OnResponse(uint64_t token, const google::protobuf::Message& response) override {
    switch (load_.options_.kind) {
      case LoadOptions::Kind::kPut:
        good_[token] = static_cast<const etcdserverpb::PutResponse&>(response).header().revision() > 0;
        return;
      case LoadOptions::Kind::kRange: {
        const auto& range = static_cast<const etcdserverpb::RangeResponse&>(response);
        good_[token] = range.header().revision() > 0;
        missing_[token] = range.kvs_size() == 0;
        return;
      }
      case LoadOptions::Kind::kTxn: {
        const auto& txn = static_cast<const etcdserverpb::TxnResponse&>(response);
        good_[token] = txn.header().revision() > 0 && txn.responses_size() == 1;
        missing_[token] = !txn.succeeded();
        return;
      }
    }
  }

  void OnCallEnd(uint64_t token, const rpc::CallStatus& status) override {
    if (!status.ok()) {
      load_.OnError(absl::StrFormat("%d %s", static_cast<int>(status.code), status.message));
    } else if (!good_[token]) {
      load_.OnError("answer without a revision");
    } else {
      load_.OnGood(load_.host_.clock().Now() - sent_[token], missing_[token]);
    }
    free_.push_back(static_cast<uint32_t>(token));
  }

  void OnGoAway() override { Leave(); }

  void OnDisconnected(IoError) override {
    lost_ = true;
    ++load_.result_.reconnects;
    load_.host_.events().Post(*this, 0);
  }

  void OnPost(uint64_t) override {
    client_.reset();
    Redial();
  }

  Load& load_;
  size_t endpoint_;
  const uint32_t slots_;
  std::unique_ptr<Timer> redial_timer_;
  std::unique_ptr<wire::GrpcClient> client_;
  bool lost_ = false;
  bool leaving_ = false;
  // By slot.
  std::vector<Instant> sent_;  // or due, at a rate
  std::vector<bool> good_;
  std::vector<bool> missing_;
  std::vector<uint32_t> free_;
};

Load::Load(Host& host, const LoadOptions& options)
    : host_(host),
      options_(options),
      random_(host.Random("load")),
      put_(std::make_unique<etcdserverpb::PutRequest>()),
      range_(std::make_unique<etcdserverpb::RangeRequest>()),
      txn_(std::make_unique<etcdserverpb::TxnRequest>()),
      limit_timer_(host.clock().NewTimer(*this, kLimitToken)),
      due_timer_(host.clock().NewTimer(*this, kDueToken)) {
  CHECK(!options.endpoints.empty() && options.connections > 0 && options.key_space > 0);
  CHECK(options.in_flight >= options.connections);
  put_->set_value(std::string(options.value_bytes, kFillByte));
  range_->set_serializable(options.serializable);
  etcdserverpb::Compare& exists = *txn_->add_compare();
  exists.set_target(etcdserverpb::Compare::VERSION);
  exists.set_result(etcdserverpb::Compare::GREATER);
  exists.set_version(0);
  txn_->add_success()->mutable_request_put()->set_value(std::string(options.value_bytes, kFillByte));
  txn_->add_failure()->mutable_request_range();
  host.events().SetTurnListener(*this);
  for (uint32_t i = 0; i < options.connections; ++i) {
    const uint32_t slots =
        options.in_flight / options.connections + (i < options.in_flight % options.connections ? 1 : 0);
    connections_.push_back(std::make_unique<Connection>(*this, i, slots));
  }
}

Load::~Load() = default;

void Load::Start() {
  for (auto& connection : connections_) connection->Dial();
  // Without an end of their own: servers that never answer, or never come up.
  const Duration limit = options_.total > 0 ? Seconds(3'600) : options_.duration + options_.timeout * 2;
  limit_timer_->Arm(host_.clock().Now() + limit);
}

void Load::OnTimer(uint64_t token) {
  if (token == kDueToken) return;  // the end of the turn starts what is due
  done_ = true;
  OnError("given up: the servers did not answer in time");
  host_.Stop(false, "the servers did not answer in time");
}

void Load::OnEndTurn() {
  // One each in turn, so that a low rate is spread over all of them too.
  for (size_t idle = 0; idle < connections_.size(); next_ = (next_ + 1) % connections_.size()) {
    idle = connections_[next_]->Fill() ? 0 : idle + 1;
  }
  for (auto& connection : connections_) connection->EndTurn();
  const Instant now = host_.clock().Now();
  // Late requests wait for slots: no turn after turn for them.
  if (options_.rate > 0 && begin_ && GoesOn(now)) due_timer_->Arm(NextDue() > now ? NextDue() : now + kLatePause);
  FinishIfDone();
}

bool Load::MayStart(Instant now) const { return GoesOn(now) && (options_.rate == 0 || !begin_ || now >= NextDue()); }

Instant Load::NextDue() const {
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  const uint64_t seconds = started_ / options_.rate;
  const uint64_t rest = started_ % options_.rate * kNanosPerSecond / options_.rate;
  return *begin_ + Nanos(static_cast<int64_t>(seconds * kNanosPerSecond + rest));
}

bool Load::GoesOn(Instant now) const {
  if (done_) return false;
  if (options_.total > 0) return started_ < options_.total;
  return !begin_ || now - *begin_ < options_.duration;
}

void Load::StartOne(Connection& connection) {
  const std::optional<uint32_t> slot = connection.TakeSlot();
  if (!slot) return;
  if (!begin_) {
    begin_ = host_.clock().Now();
    last_good_ = *begin_;
  }
  const Instant due = options_.rate > 0 ? NextDue() : host_.clock().Now();
  const google::protobuf::Message& request = NextRequest();
  ++started_;
  if (!connection.Start(MethodOf(options_.kind), request, *slot, due)) {
    OnError("the connection takes no more calls");
  }
}

void Load::OnGood(Duration latency, bool missing) {
  const Instant now = host_.clock().Now();
  result_.longest_gap = std::max(result_.longest_gap, now - last_good_);
  last_good_ = now;
  ++result_.good;
  result_.missing += missing ? 1 : 0;
  result_.latencies.Add(static_cast<uint64_t>(std::max<int64_t>(0, latency.micros())));
  ++ended_;
}

void Load::OnError(std::string text) {
  ++result_.errors[std::move(text)];
  ++ended_;
}

void Load::FinishIfDone() {
  const Instant now = host_.clock().Now();
  if (done_ || !begin_ || GoesOn(now) || ended_ < started_) return;
  done_ = true;
  result_.elapsed = now - *begin_;
  host_.Stop(true, "the load is over");
}

const google::protobuf::Message& Load::NextRequest() {
  const std::string& key = NextKey();
  switch (options_.kind) {
    case LoadOptions::Kind::kPut: put_->set_key(key); return *put_;
    case LoadOptions::Kind::kRange: range_->set_key(key); return *range_;
    case LoadOptions::Kind::kTxn: break;
  }
  txn_->mutable_compare(0)->set_key(key);
  txn_->mutable_success(0)->mutable_request_put()->set_key(key);
  txn_->mutable_failure(0)->mutable_request_range()->set_key(key);
  return *txn_;
}

const std::string& Load::NextKey() {
  const uint64_t number = options_.sequential ? started_ % options_.key_space : random_.Below(options_.key_space);
  key_ = absl::StrFormat("bench-%012d", number);
  return key_;
}

}  // namespace detcd::realnet
