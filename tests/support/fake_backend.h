// A backend and a transport that only remember what they were asked, so that a test decides what happens next.
#pragma once

#include <google/protobuf/message.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/proto/raft_internal.pb.h"
#include "core/rpc/backend.h"
#include "core/rpc/call.h"
#include "core/rpc/services.h"

namespace detcd::testing {

class FakeBackend final : public rpc::Backend {
 public:
  struct Read {
    rpc::Waiter waiter;
    rpc::ReadListener* listener;
    uint64_t token;
  };

  struct Hash {
    rpc::Waiter waiter;
    rpc::HashListener* listener;
    Revision revision;
  };

  void Propose(const rpc::Waiter& waiter, etcdserverpb::InternalRaftRequest& request) override {
    request.mutable_header()->set_id(77);
    proposals.push_back({waiter, request});
  }
  void LinearizableRead(const rpc::Waiter& waiter, rpc::ReadListener& listener, uint64_t token) override {
    reads.push_back({waiter, &listener, token});
  }
  void HashKv(const rpc::Waiter& waiter, rpc::HashListener& listener, Revision revision) override {
    hashes.push_back({waiter, &listener, revision});
  }
  void MoveLeader(const rpc::Waiter& waiter, MemberId target) override { moves.push_back({waiter, target}); }
  void RequestWork(rpc::WorkListener& listener) override { worker = &listener; }
  const mvcc::Store& store() const override { return store_; }
  rpc::MemberStatus Status() const override { return status; }
  std::vector<rpc::MemberRow> Members() const override { return members; }
  bool HasLeader() const override { return !status.leader.IsZero(); }
  std::string ClusterVersion() const override { return cluster_version; }

  // Answers the oldest waiting read.
  void FinishRead(rpc::ApiError error) {
    const Read read = reads.front();
    reads.pop_front();
    read.listener->OnReadReady(read.waiter, read.token, error);
  }
  // One slice of the work that was asked for; false: none was.
  bool Work() {
    rpc::WorkListener* asked = std::exchange(worker, nullptr);
    if (asked != nullptr) asked->OnWork();
    return asked != nullptr;
  }
  mvcc::Store& mutable_store() { return store_; }
  void Put(std::string_view key, std::string_view value) {
    store_.Begin();
    store_.Put(Bytes::Copy(key), Bytes::Copy(value), LeaseId());
    store_.Commit();
  }

  rpc::MemberStatus status = {.cluster = ClusterId(10),
                              .member = MemberId(11),
                              .leader = MemberId(11),
                              .term = Term(5),
                              .applied_term = Term(4),
                              .commit_index = LogIndex(9),
                              .applied_index = LogIndex(8),
                              .storage_version = "3.7.0"};
  std::vector<rpc::MemberRow> members;
  std::vector<std::pair<rpc::Waiter, etcdserverpb::InternalRaftRequest>> proposals;
  std::deque<Read> reads;
  std::vector<Hash> hashes;
  std::vector<std::pair<rpc::Waiter, MemberId>> moves;
  std::string cluster_version;
  rpc::WorkListener* worker = nullptr;

 private:
  mvcc::Store store_;
};

class FakeTransport final : public rpc::CallTransport {
 public:
  struct Call {
    std::vector<std::string> sent;       // text form of each message
    std::optional<std::string> encoded;  // what came encoded
    bool finished = false;
    rpc::CallStatus status;

    friend bool operator==(const Call&, const Call&) = default;
  };

  void Send(rpc::CallId call, const google::protobuf::Message& response) override {
    calls[call].sent.push_back(response.ShortDebugString());
    bytes_sent += response.ByteSizeLong();
    if (credit > 0) --credit;
  }
  void SendEncoded(rpc::CallId call, std::vector<Bytes> pieces) override {
    std::string& whole = calls[call].encoded.emplace();
    for (const Bytes& piece : pieces) whole += piece.view();
  }
  bool Writable(rpc::CallId) const override { return credit > 0; }
  void Finish(rpc::CallId call, rpc::CallStatus status) override {
    ++finishes;
    calls[call].finished = true;
    calls[call].status = std::move(status);
  }

  std::map<rpc::CallId, Call> calls;
  int finishes = 0;
  size_t bytes_sent = 0;
  size_t credit = 1'000'000;  // messages that streams may still send
};

// Services between the two.
class ServicesHarness {
 protected:
  // Opens a call with one message and the client's end.
  rpc::CallId Start(rpc::Method method, const google::protobuf::Message& request, rpc::CallContext context = {}) {
    const rpc::CallId call = next_call_++;
    context.method = method;
    services.Open(transport, call, context);
    services.Message(transport, call, request);
    services.HalfClose(transport, call);
    return call;
  }

  FakeBackend backend;
  FakeTransport transport;
  rpc::Services services{backend, {}};

 private:
  rpc::CallId next_call_ = 1;
};

}  // namespace detcd::testing
