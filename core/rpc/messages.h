// Small conversions between the store's structs and the API's messages, shared by the services and the apply loop.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/limits.h"
#include "core/base/types.h"
#include "core/mvcc/store.h"
#include "core/rpc/api_error.h"
#include "core/rpc/backend.h"

namespace etcdserverpb {
class Member;
class RangeRequest;
class RangeResponse;
class ResponseHeader;
}  // namespace etcdserverpb
namespace google::protobuf {
class Message;
}
namespace mvccpb {
class KeyValue;
}

namespace detcd::rpc {

// Decodes a request as deep as transactions nest, which is deeper than the protobuf library goes by itself. False:
// `encoded` is no such message.
bool ParseRequest(std::string_view encoded, google::protobuf::Message& request);

// Cluster id, member id and the term of the last applied entry: those of the member that answers, read when the answer
// is made (reference/semantics.md 1). `revision` is set where the operation has not set one.
void FillHeader(const MemberStatus& status, Revision revision, etcdserverpb::ResponseHeader& header);
// As above for answers whose revision stays 0 (the member calls).
void FillHeader(const MemberStatus& status, etcdserverpb::ResponseHeader& header);

void ToMessage(const mvcc::KeyValue& pair, mvccpb::KeyValue& out);
void ToMessage(const MemberRow& row, etcdserverpb::Member& out);

ApiError ToApiError(mvcc::RangeError error);

// Reads what `request` asks of `store` into everything but the header of `response`. Sort numbers out of range act as
// 0: the services refuse them before.
ApiError ReadRange(const mvcc::Store& store, const etcdserverpb::RangeRequest& request,
                   etcdserverpb::RangeResponse& response);
// As above when one slice is enough; nullopt: it is not, and nothing was read.
std::optional<ApiError> ReadRangeInOneSlice(const mvcc::Store& store, const etcdserverpb::RangeRequest& request,
                                            etcdserverpb::RangeResponse& response);
inline constexpr mvcc::RangeSlice kRangeSlice = {
    .keys_max = kRangeSliceKeys, .pairs_max = kRangeSlicePairs, .bytes_max = kRangeSliceBytes};
mvcc::RangeOptions OptionsOf(const etcdserverpb::RangeRequest& request);

// The message of one kind that a call's method names; the transport gives no other.
template <class Wanted, class Base>
const Wanted& As(const Base& message) {
  return static_cast<const Wanted&>(message);
}

}  // namespace detcd::rpc
