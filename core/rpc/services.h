// All methods of the API over one Backend: checks that every call shares, then the service of the method. A call is
// remembered here only while it waits for its message, for a linearizable read, for a long range, or for its end as a
// stream; a proposal is handed to the backend whole, which answers the call when the entry is applied.
#pragma once

#include <cstdint>
#include <memory>

#include "core/rpc/backend.h"
#include "core/rpc/call.h"

namespace detcd::rpc {

// What the answers of a member say that does not change while it runs.
struct ServicesOptions {
  int64_t quota_bytes = 2'147'483'648;  // Status.dbSizeQuota; etcd's default of 2 GiB
};

class Services final : public CallService, public ReadListener, public HashListener, public WorkListener {
 public:
  // `backend` outlives this object.
  Services(Backend& backend, ServicesOptions options);
  ~Services();
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  void Open(CallTransport& transport, CallId call, const CallContext& context) override;
  void Message(CallTransport& transport, CallId call, const google::protobuf::Message& request) override;
  void HalfClose(CallTransport& transport, CallId call) override;
  void Cancel(CallTransport& transport, CallId call) override;
  void Credit(CallTransport& transport, CallId call) override;

  void OnReadReady(const Waiter& waiter, uint64_t token, ApiError error) override;
  void OnHashReady(const Waiter& waiter, ApiError error, const mvcc::HashResult& result) override;
  void OnWork() override;

  // Calls remembered now.
  size_t open_call_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detcd::rpc
