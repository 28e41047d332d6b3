// Load on a real cluster, and the record of it (checker/history.proto): the simulator's own clients, with their rules for
// retries and for which errors are definite, over real sockets. Few keys, so that operations conflict.
//
//   history_load --endpoints HOST:PORT,HOST:PORT,HOST:PORT --duration 60 --out FILE
//
// The cluster is new. When the time is over, or at SIGTERM, each member must take a write and then show, from its own
// store, what a linearizable read of all keys shows: its final state. The last line says what was recorded. Ends with 0, 2
// when the members did not serve within --final-within (the file is whole all the same), 64 for a bad command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/execution.h"
#include "checker/history_file.h"
#include "core/wire/url.h"
#include "realnet/real_host.h"
#include "sim/client.h"
#include "sim/sim_streams.h"
#include "sim/wire_calls.h"

namespace detcd::realnet {
namespace {

using checker::OperationKind;
using checker::Outcome;
using checker::Request;

constexpr int kNotLive = 2;
constexpr int kUsage = 64;
constexpr uint64_t kKeys = 8;
constexpr char kAllKeys[] = {'\0'};
constexpr int64_t kCompactBack = 600;   // the least: what the resolver still wants to read is mostly younger
constexpr Duration kTick = Seconds(1);
constexpr Duration kFinalPause = Millis(100);

struct Arguments {
  std::string endpoints;
  std::string out;
  std::string note;
  double seconds = 60;
  double final_within_seconds = 60;
  uint32_t clients = 8;
  uint64_t seed = 1;
  int64_t think_millis = 40;    // a client waits up to so long between two operations
  int64_t timeout_millis = 4'000;
};

// The addresses that simulated clients dial, by the members' numbers, become those of the command line.
class EndpointNetwork final : public Network {
 public:
  EndpointNetwork(Network& real, const std::vector<Address>& endpoints) : real_(real) {
    for (size_t i = 0; i < endpoints.size(); ++i) {
      endpoints_[sim::EndpointHost(static_cast<sim::EndpointId>(i))] = endpoints[i];
    }
  }
  ListenResult Listen(const Address& address, AcceptListener& listener) override { return real_.Listen(address, listener); }
  std::unique_ptr<Stream> Connect(const Address& address, StreamListener& listener) override {
    return real_.Connect(endpoints_.at(address.host), listener);
  }
  void Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) override {
    real_.Resolve(host, port, listener, token);
  }

 private:
  Network& real_;
  std::map<std::string, Address> endpoints_;
};

class EndpointHost final : public Host {
 public:
  EndpointHost(Host& real, const std::vector<Address>& endpoints) : real_(real), network_(real.network(), endpoints) {}

  Events& events() override { return real_.events(); }
  Clock& clock() override { return real_.clock(); }
  Network& network() override { return network_; }
  FileSystem& files() override { return real_.files(); }
  Offloader& offloader() override { return real_.offloader(); }
  Trace& trace() override { return real_.trace(); }
  KeyedRandom Random(std::string_view component) override { return real_.Random(component); }
  void FillSecure(std::span<uint8_t> out) override { real_.FillSecure(out); }
  void Stop(bool ok, std::string reason) override { real_.Stop(ok, std::move(reason)); }

 private:
  Host& real_;
  EndpointNetwork network_;
};

std::string KeyName(uint64_t number) { return absl::StrFormat("k%d", number); }

// Draws operations. Each put has a value of its own.
class Workload {
 public:
  explicit Workload(KeyedRandom random) : random_(std::move(random)) {}

  uint64_t Below(uint64_t limit) { return random_.Below(limit); }

  sim::PlannedOperation Next(uint64_t id, bool may_compact) {
    sim::PlannedOperation planned{.id = id};
    const uint64_t draw = Below(100);
    if (draw < 30) {
      planned.request = Put(id, Key());
    } else if (draw < 44) {
      planned.request = {.kind = OperationKind::kRange, .key = Key()};
    } else if (draw < 52) {
      planned.request = All();
      planned.request.serializable = Below(2) == 0;
    } else if (draw < 58) {
      planned.request = All();
      planned.revisions_back = static_cast<int64_t>(Below(40));
    } else if (draw < 61) {
      planned.request = All();
      planned.request.streamed = true;
    } else if (draw < 69) {
      planned.request = {.kind = OperationKind::kDelete, .key = Key(), .prev_kv = Below(2) == 0};
      if (Below(3) == 0) planned.request.range_end = planned.request.key + "\xff";
    } else if (draw < 94) {
      FillTransaction(planned);
    } else if (draw < 98 || !may_compact) {
      planned.request.kind = OperationKind::kHashKv;
      planned.revisions_back = static_cast<int64_t>(Below(30));
    } else {
      planned.request.kind = OperationKind::kCompact;
      planned.revisions_back = kCompactBack + static_cast<int64_t>(Below(kCompactBack));
    }
    return planned;
  }

 private:
  std::string Key() { return KeyName(Below(kKeys)); }

  static Request All() { return {.kind = OperationKind::kRange, .key = "k", .range_end = "l"}; }

  Request Put(uint64_t id, std::string key) {
    Request put{.kind = OperationKind::kPut, .key = std::move(key), .value = absl::StrFormat("v%d", id)};
    put.prev_kv = Below(4) == 0;
    return put;
  }

  // Changes a key if it is as this client saw it last, and sometimes a second one with it; else reads it.
  void FillTransaction(sim::PlannedOperation& planned) {
    static constexpr checker::CompareTarget kTargets[] = {checker::CompareTarget::kMod, checker::CompareTarget::kVersion,
                                                          checker::CompareTarget::kValue};
    Request& txn = planned.request;
    txn.kind = OperationKind::kTxn;
    const std::string key = Key();
    const std::string other = Key();
    txn.compares.push_back({.target = kTargets[Below(3)], .key = key});
    planned.as_seen.push_back(0);
    txn.success.push_back(Put(planned.id, key));
    txn.failure.push_back({.kind = OperationKind::kRange, .key = key});
    if (other == key) return;
    Request second{.kind = Below(2) == 0 ? OperationKind::kDelete : OperationKind::kPut, .key = other};
    if (second.kind == OperationKind::kPut) second.value = absl::StrFormat("v%d.2", planned.id);
    if (Below(2) == 0) txn.success.push_back(std::move(second));
  }

  KeyedRandom random_;
};

class HistoryLoad final : private sim::ClientListener, private TurnListener, private TimerListener {
 public:
  HistoryLoad(Host& host, const Arguments& arguments, const std::vector<std::string>& endpoints, std::ostream& out)
      : host_(host), arguments_(arguments), members_(endpoints.size()), out_(out), workload_(host.Random("history")),
        timer_(host.clock().NewTimer(*this, 0)),
        ticks_(host.clock().NewTimer(*this, 1)) {
    out_ << checker::EncodeHeader(endpoints, arguments.note);
    host.events().SetTurnListener(*this);
    std::vector<sim::EndpointId> all;
    for (size_t i = 0; i < members_; ++i) all.push_back(static_cast<sim::EndpointId>(i));
    for (uint32_t i = 0; i < arguments.clients; ++i) AddClient(all);
    for (const sim::EndpointId endpoint : all) AddClient({endpoint});
    AddClient(all);
    finals_.resize(members_);
  }

  void Start() {
    for (uint32_t i = 0; i < arguments_.clients; ++i) PlanNext(i);
    timer_->Arm(host_.clock().Now() + Nanos(static_cast<int64_t>(arguments_.seconds * 1e9)));
    ticks_->Arm(host_.clock().Now() + kTick);
  }
  // No new operations from now on, but those that ask what became of the others.
  void Wind() {
    if (phase_ != Phase::kLoad) return;
    phase_ = Phase::kDraining;
    for (uint32_t i = 0; i < arguments_.clients; ++i) clients_[i].client->DropPlanned();
    timer_->Arm(host_.clock().Now() + Nanos(static_cast<int64_t>(arguments_.final_within_seconds * 1e9)));
  }
  bool live() const { return live_; }
  std::string Summary() const {
    return absl::StrFormat("{\"operations\":%d,\"answered\":%d,\"refused\":%d,\"unknown\":%d,\"revision\":%d,\"live\":%s}",
                           recorded_, answered_, refused_, recorded_ - answered_ - refused_, revision_,
                           live_ ? "true" : "false");
  }

 private:
  enum class Phase : uint8_t {
    kLoad,
    kDraining,   // operations under way end
    kResolving,  // revisions that nobody says to have made are read
    kWriting,    // each member takes a write
    kReading,    // the first one is asked for all keys
    kComparing,  // each shows its own
    kOver,
  };
  struct Slot {
    std::unique_ptr<sim::Client> client;
    std::unique_ptr<sim::WireClientCalls> calls;  // destroyed first
  };

  void AddClient(const std::vector<sim::EndpointId>& members) {
    sim::ClientKnobs knobs{.number = static_cast<uint32_t>(clients_.size() + 1),
                           .members = members,
                           .try_timeout = Millis(arguments_.timeout_millis / 2),
                           .total_timeout = Millis(arguments_.timeout_millis)};
    auto client = std::make_unique<sim::Client>(host_, knobs, static_cast<sim::ClientListener&>(*this));
    auto calls = std::make_unique<sim::WireClientCalls>(host_, members, *client);
    client->SetCalls(*calls);
    clients_.push_back({.client = std::move(client), .calls = std::move(calls)});
  }

  void Plan(size_t client, sim::PlannedOperation operation, Duration pause) {
    operation.at = host_.clock().Now() + pause;
    clients_[client].client->Plan(std::move(operation));
  }

  void PlanNext(size_t client) {
    Plan(client, workload_.Next(++last_id_, client == 0),
         Micros(static_cast<int64_t>(workload_.Below(static_cast<uint64_t>(arguments_.think_millis) * 1'000 + 1))));
  }

  void PlanRead(size_t member, bool serializable, Duration pause) {
    Request all = AllKeys();
    all.serializable = serializable;
    Plan(arguments_.clients + member, {.id = ++last_id_, .request = std::move(all)}, pause);
  }

  void PlanWrite(size_t member, Duration pause) {
    ++last_id_;
    Request put{.kind = OperationKind::kPut, .key = absl::StrFormat("final%d", member), .value = absl::StrFormat("v%d", last_id_)};
    Plan(arguments_.clients + member, {.id = last_id_, .request = std::move(put)}, pause);
  }

  void OnEndTurn() override {
    if (phase_ == Phase::kDraining &&
        std::ranges::all_of(clients_, [](const Slot& slot) { return slot.client->idle(); })) {
      phase_ = Phase::kResolving;
      ripe_ = revision_;
      Resolve();
    }
    for (Slot& slot : clients_) slot.calls->EndTurn();
  }

  void OnTimer(uint64_t token) override {
    if (token == 1) return Tick();
    if (phase_ == Phase::kLoad) return Wind();
    if (phase_ != Phase::kOver) Finish(false);
  }

  // By then every operation that was called when a revision was first seen has ended.
  void Tick() {
    if (phase_ != Phase::kLoad && phase_ != Phase::kDraining) return;
    seen_.push_back(revision_);
    if (Seconds(static_cast<int64_t>(seen_.size())) > Millis(arguments_.timeout_millis) + kTick) {
      ripe_ = seen_.front();
      seen_.pop_front();
    }
    Resolve();
    ticks_->Arm(host_.clock().Now() + kTick);
  }

  // Many writes without an answer, and revisions of unknown authors that are overwritten before anybody looks, leave the
  // judges too many possibilities: so all keys are read just before and at each such revision.
  void Resolve() {
    const size_t resolver = arguments_.clients + members_;
    if (!clients_[resolver].client->idle()) return;
    while (examined_ < ripe_) {
      ++examined_;
      if (owned_.erase(examined_) > 0) continue;
      unresolved_.push_back(examined_ - 1);
      unresolved_.push_back(examined_);
    }
    if (!unresolved_.empty()) {
      Request all = AllKeys();
      all.revision = unresolved_.front();
      unresolved_.pop_front();
      return Plan(resolver, {.id = ++last_id_, .request = std::move(all)}, Duration());
    }
    if (phase_ != Phase::kResolving) return;
    phase_ = Phase::kWriting;
    left_ = members_;
    for (size_t i = 0; i < members_; ++i) PlanWrite(i, Duration());
  }

  static Request AllKeys() {
    return {.kind = OperationKind::kRange, .key = std::string(kAllKeys, 1), .range_end = std::string(kAllKeys, 1)};
  }

  MemberId MemberAt(sim::EndpointId endpoint) const override { return MemberId(endpoint + 1); }
  void OnOperationCall(checker::Operation& operation) override {
    operation.call.true_time = host_.clock().Now();
    calls_[operation.client] = operation;
  }

  void OnOperationEnd(checker::Operation& operation) override {
    operation.call = calls_.at(operation.client).call;
    calls_.erase(operation.client);
    operation.end.true_time = host_.clock().Now();
    Record(operation);
    const size_t client = operation.client - 1;
    if (client < arguments_.clients) {
      if (phase_ == Phase::kLoad) PlanNext(client);
      return;
    }
    if (client == arguments_.clients + members_) return Resolve();
    const bool answered = operation.outcome == Outcome::kAnswered && operation.answer.error.empty();
    OnFinal(client - arguments_.clients, answered ? &operation.answer : nullptr);
  }

  // `answer`: nullptr when there is none, and the question is asked again.
  void OnFinal(size_t member, const checker::Answer* answer) {
    switch (phase_) {
      case Phase::kLoad: case Phase::kDraining: case Phase::kResolving: case Phase::kOver: return;
      case Phase::kWriting:
        if (answer == nullptr) return PlanWrite(member, kFinalPause);
        if (--left_ > 0) return;
        phase_ = Phase::kReading;
        return PlanRead(0, false, Duration());
      case Phase::kReading:
        if (answer == nullptr) return PlanRead(0, false, kFinalPause);
        target_ = answer->header_revision;
        phase_ = Phase::kComparing;
        left_ = members_;
        beyond_ = false;
        for (size_t i = 0; i < members_; ++i) PlanRead(i, true, Duration());
        return;
      case Phase::kComparing: break;
    }
    if (answer == nullptr || answer->header_revision < target_) return PlanRead(member, true, kFinalPause);
    // A write whose client gave it up has come late: once more.
    beyond_ = beyond_ || answer->header_revision > target_;
    finals_[member] = {.member = MemberId(member + 1), .revision = answer->header_revision};
    finals_[member].at.true_time = host_.clock().Now();
    for (const checker::ObservedKeyValue& kv : answer->kvs) {
      finals_[member].keys.push_back({.key = kv.key,
                                      .value = kv.value,
                                      .create_revision = Revision(kv.create_revision),
                                      .mod_revision = Revision(kv.mod_revision),
                                      .version = kv.version});
    }
    if (--left_ > 0) return;
    if (!beyond_) return Finish(true);
    phase_ = Phase::kReading;
    PlanRead(0, false, Duration());
  }

  void Record(const checker::Operation& operation) {
    if (phase_ == Phase::kOver) return;
    out_ << checker::EncodeOperation(operation);
    ++recorded_;
    answered_ += operation.outcome == Outcome::kAnswered ? 1 : 0;
    refused_ += operation.outcome == Outcome::kRefused ? 1 : 0;
    revision_ = std::max(revision_, operation.answer.header_revision);
    if (operation.outcome == Outcome::kAnswered && operation.answer.error.empty() &&
        checker::SaysItChanged(operation.request, operation.answer)) {
      owned_.insert(operation.answer.header_revision);
    }
  }

  void Finish(bool live) {
    // What is still under way is unknown, and must not be missing.
    for (auto& [client, operation] : calls_) {
      operation.end.true_time = host_.clock().Now();
      operation.outcome = Outcome::kUnknown;
      Record(operation);
    }
    live_ = live;
    if (live) {
      for (const checker::RecordedFinal& final_state : finals_) out_ << checker::EncodeFinalState(final_state);
    }
    out_ << checker::EncodeEnd(recorded_, live ? finals_.size() : 0);
    phase_ = Phase::kOver;
    host_.Stop(true, "recorded");
  }

  Host& host_;
  const Arguments& arguments_;
  const size_t members_;
  std::ostream& out_;
  Workload workload_;
  std::unique_ptr<Timer> timer_;
  std::vector<Slot> clients_;                     // those of the load, then one for each member, and the resolver
  std::map<uint32_t, checker::Operation> calls_;  // under way, by client
  Phase phase_ = Phase::kLoad;
  size_t left_ = 0;
  bool beyond_ = false;
  int64_t target_ = 0;
  std::vector<checker::RecordedFinal> finals_;
  bool live_ = false;
  uint64_t last_id_ = 0;
  uint64_t recorded_ = 0;
  uint64_t answered_ = 0;
  uint64_t refused_ = 0;
  int64_t revision_ = 1;

  std::unique_ptr<Timer> ticks_;
  std::deque<int64_t> seen_;        // revision_ at the last ticks
  int64_t ripe_ = 1;                // up to here the authors that will ever say so have
  int64_t examined_ = 1;            // up to here they were looked for
  std::set<int64_t> owned_;         // revisions above examined_ that answered operations made
  std::deque<int64_t> unresolved_;  // to be read
};

int Run(const Arguments& arguments) {
  std::vector<std::string> names;
  std::vector<Address> addresses;
  std::istringstream parts(arguments.endpoints);
  for (std::string part; std::getline(parts, part, ',');) {
    const absl::StatusOr<wire::Url> url = wire::ParseUrl("http://" + part);
    if (!url.ok()) {
      std::fprintf(stderr, "history_load: endpoint %s: %s\n", part.c_str(), std::string(url.status().message()).c_str());
      return kUsage;
    }
    names.push_back(part);
    addresses.push_back({.host = url->host, .port = url->port});
  }
  std::ofstream out(arguments.out, std::ios::binary);
  if (names.empty() || !out) {
    std::fprintf(stderr, "history_load: no endpoints, or %s cannot be written\n", arguments.out.c_str());
    return kUsage;
  }
  HistoryLoad* running = nullptr;
  RealHost real({.data_folder = ".", .log_level = LogLevel::kError, .seed = arguments.seed, .on_signal = [&](int) {
                   if (running != nullptr) running->Wind();
                 }});
  EndpointHost host(real, addresses);
  HistoryLoad load(host, arguments, names, out);
  running = &load;
  load.Start();
  real.Run();
  out.close();
  std::printf("%s\n", load.Summary().c_str());
  real.End();
  if (!out) {
    std::fprintf(stderr, "history_load: %s cannot be written\n", arguments.out.c_str());
    return kUsage;
  }
  return load.live() ? 0 : kNotLive;
}

}  // namespace
}  // namespace detcd::realnet

int main(int count, char** words) {
  detcd::realnet::Arguments arguments;
  CLI::App app("Load on a new cluster, and the record of it for detcd-sim check.", "history_load");
  app.add_option("--endpoints", arguments.endpoints, "HOST:PORT of every member, comma separated")->required();
  app.add_option("--out", arguments.out, "the file")->required();
  app.add_option("--note", arguments.note, "for the file's header");
  app.add_option("--duration", arguments.seconds, "seconds")->check(CLI::Range(0.1, 86'400.0))->capture_default_str();
  app.add_option("--final-within", arguments.final_within_seconds, "seconds for the members to serve and agree in the end")
      ->capture_default_str();
  app.add_option("--clients", arguments.clients)->check(CLI::Range(1, 1'000))->capture_default_str();
  app.add_option("--seed", arguments.seed, "of the operations")->capture_default_str();
  app.add_option("--think", arguments.think_millis, "milliseconds at most between two operations of a client")
      ->check(CLI::Range(0, 60'000))
      ->capture_default_str();
  app.add_option("--timeout", arguments.timeout_millis, "milliseconds until a client gives an operation up")
      ->check(CLI::Range(2, 600'000))
      ->capture_default_str();
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : detcd::realnet::kUsage;
  }
  return detcd::realnet::Run(arguments);
}
