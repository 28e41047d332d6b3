// The methods of etcd's API (reference/api.md 1 and 4): one list, from which names, streaming kinds and message types come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace google::protobuf {
class Arena;
class Message;
}  // namespace google::protobuf

namespace detcd::rpc {

// Rows: enumerator, service with its package, method, C++ namespace of the messages, request, response, whether the
// client streams, whether the server streams.
#define DETCD_METHODS(X) \
  X(kRange, "etcdserverpb.KV", "Range", etcdserverpb, RangeRequest, RangeResponse, false, false) \
  X(kRangeStream, "etcdserverpb.KV", "RangeStream", etcdserverpb, RangeRequest, RangeStreamResponse, false, true) \
  X(kPut, "etcdserverpb.KV", "Put", etcdserverpb, PutRequest, PutResponse, false, false) \
  X(kDeleteRange, "etcdserverpb.KV", "DeleteRange", etcdserverpb, DeleteRangeRequest, DeleteRangeResponse, false, false) \
  X(kTxn, "etcdserverpb.KV", "Txn", etcdserverpb, TxnRequest, TxnResponse, false, false) \
  X(kCompact, "etcdserverpb.KV", "Compact", etcdserverpb, CompactionRequest, CompactionResponse, false, false) \
  X(kWatch, "etcdserverpb.Watch", "Watch", etcdserverpb, WatchRequest, WatchResponse, true, true) \
  X(kLeaseGrant, "etcdserverpb.Lease", "LeaseGrant", etcdserverpb, LeaseGrantRequest, LeaseGrantResponse, false, false) \
  X(kLeaseRevoke, "etcdserverpb.Lease", "LeaseRevoke", etcdserverpb, LeaseRevokeRequest, LeaseRevokeResponse, false, false) \
  X(kLeaseKeepAlive, "etcdserverpb.Lease", "LeaseKeepAlive", etcdserverpb, LeaseKeepAliveRequest, LeaseKeepAliveResponse, true, true) \
  X(kLeaseTimeToLive, "etcdserverpb.Lease", "LeaseTimeToLive", etcdserverpb, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, false, false) \
  X(kLeaseLeases, "etcdserverpb.Lease", "LeaseLeases", etcdserverpb, LeaseLeasesRequest, LeaseLeasesResponse, false, false) \
  X(kMemberAdd, "etcdserverpb.Cluster", "MemberAdd", etcdserverpb, MemberAddRequest, MemberAddResponse, false, false) \
  X(kMemberRemove, "etcdserverpb.Cluster", "MemberRemove", etcdserverpb, MemberRemoveRequest, MemberRemoveResponse, false, false) \
  X(kMemberUpdate, "etcdserverpb.Cluster", "MemberUpdate", etcdserverpb, MemberUpdateRequest, MemberUpdateResponse, false, false) \
  X(kMemberList, "etcdserverpb.Cluster", "MemberList", etcdserverpb, MemberListRequest, MemberListResponse, false, false) \
  X(kMemberPromote, "etcdserverpb.Cluster", "MemberPromote", etcdserverpb, MemberPromoteRequest, MemberPromoteResponse, false, false) \
  X(kAlarm, "etcdserverpb.Maintenance", "Alarm", etcdserverpb, AlarmRequest, AlarmResponse, false, false) \
  X(kStatus, "etcdserverpb.Maintenance", "Status", etcdserverpb, StatusRequest, StatusResponse, false, false) \
  X(kDefragment, "etcdserverpb.Maintenance", "Defragment", etcdserverpb, DefragmentRequest, DefragmentResponse, false, false) \
  X(kHash, "etcdserverpb.Maintenance", "Hash", etcdserverpb, HashRequest, HashResponse, false, false) \
  X(kHashKV, "etcdserverpb.Maintenance", "HashKV", etcdserverpb, HashKVRequest, HashKVResponse, false, false) \
  X(kSnapshot, "etcdserverpb.Maintenance", "Snapshot", etcdserverpb, SnapshotRequest, SnapshotResponse, false, true) \
  X(kMoveLeader, "etcdserverpb.Maintenance", "MoveLeader", etcdserverpb, MoveLeaderRequest, MoveLeaderResponse, false, false) \
  X(kDowngrade, "etcdserverpb.Maintenance", "Downgrade", etcdserverpb, DowngradeRequest, DowngradeResponse, false, false) \
  X(kAuthEnable, "etcdserverpb.Auth", "AuthEnable", etcdserverpb, AuthEnableRequest, AuthEnableResponse, false, false) \
  X(kAuthDisable, "etcdserverpb.Auth", "AuthDisable", etcdserverpb, AuthDisableRequest, AuthDisableResponse, false, false) \
  X(kAuthStatus, "etcdserverpb.Auth", "AuthStatus", etcdserverpb, AuthStatusRequest, AuthStatusResponse, false, false) \
  X(kAuthenticate, "etcdserverpb.Auth", "Authenticate", etcdserverpb, AuthenticateRequest, AuthenticateResponse, false, false) \
  X(kUserAdd, "etcdserverpb.Auth", "UserAdd", etcdserverpb, AuthUserAddRequest, AuthUserAddResponse, false, false) \
  X(kUserGet, "etcdserverpb.Auth", "UserGet", etcdserverpb, AuthUserGetRequest, AuthUserGetResponse, false, false) \
  X(kUserList, "etcdserverpb.Auth", "UserList", etcdserverpb, AuthUserListRequest, AuthUserListResponse, false, false) \
  X(kUserDelete, "etcdserverpb.Auth", "UserDelete", etcdserverpb, AuthUserDeleteRequest, AuthUserDeleteResponse, false, false) \
  X(kUserChangePassword, "etcdserverpb.Auth", "UserChangePassword", etcdserverpb, AuthUserChangePasswordRequest, AuthUserChangePasswordResponse, false, false) \
  X(kUserGrantRole, "etcdserverpb.Auth", "UserGrantRole", etcdserverpb, AuthUserGrantRoleRequest, AuthUserGrantRoleResponse, false, false) \
  X(kUserRevokeRole, "etcdserverpb.Auth", "UserRevokeRole", etcdserverpb, AuthUserRevokeRoleRequest, AuthUserRevokeRoleResponse, false, false) \
  X(kRoleAdd, "etcdserverpb.Auth", "RoleAdd", etcdserverpb, AuthRoleAddRequest, AuthRoleAddResponse, false, false) \
  X(kRoleGet, "etcdserverpb.Auth", "RoleGet", etcdserverpb, AuthRoleGetRequest, AuthRoleGetResponse, false, false) \
  X(kRoleList, "etcdserverpb.Auth", "RoleList", etcdserverpb, AuthRoleListRequest, AuthRoleListResponse, false, false) \
  X(kRoleDelete, "etcdserverpb.Auth", "RoleDelete", etcdserverpb, AuthRoleDeleteRequest, AuthRoleDeleteResponse, false, false) \
  X(kRoleGrantPermission, "etcdserverpb.Auth", "RoleGrantPermission", etcdserverpb, AuthRoleGrantPermissionRequest, AuthRoleGrantPermissionResponse, false, false) \
  X(kRoleRevokePermission, "etcdserverpb.Auth", "RoleRevokePermission", etcdserverpb, AuthRoleRevokePermissionRequest, AuthRoleRevokePermissionResponse, false, false) \
  X(kCampaign, "v3electionpb.Election", "Campaign", v3electionpb, CampaignRequest, CampaignResponse, false, false) \
  X(kProclaim, "v3electionpb.Election", "Proclaim", v3electionpb, ProclaimRequest, ProclaimResponse, false, false) \
  X(kLeader, "v3electionpb.Election", "Leader", v3electionpb, LeaderRequest, LeaderResponse, false, false) \
  X(kObserve, "v3electionpb.Election", "Observe", v3electionpb, LeaderRequest, LeaderResponse, false, true) \
  X(kResign, "v3electionpb.Election", "Resign", v3electionpb, ResignRequest, ResignResponse, false, false) \
  X(kLock, "v3lockpb.Lock", "Lock", v3lockpb, LockRequest, LockResponse, false, false) \
  X(kUnlock, "v3lockpb.Lock", "Unlock", v3lockpb, UnlockRequest, UnlockResponse, false, false) \
  X(kHealthCheck, "grpc.health.v1.Health", "Check", grpc::health::v1, HealthCheckRequest, HealthCheckResponse, false, false) \
  X(kHealthWatch, "grpc.health.v1.Health", "Watch", grpc::health::v1, HealthCheckRequest, HealthCheckResponse, false, true) \
  X(kHealthList, "grpc.health.v1.Health", "List", grpc::health::v1, HealthListRequest, HealthListResponse, false, false)

enum class Method : uint16_t {
#define DETCD_METHOD_ENUMERATOR(name, service, method, package, request, response, client_streams, server_streams) name,
  DETCD_METHODS(DETCD_METHOD_ENUMERATOR)
#undef DETCD_METHOD_ENUMERATOR
};

#define DETCD_METHOD_COUNT(name, service, method, package, request, response, client_streams, server_streams) +1
inline constexpr uint16_t kMethodCount = 0 DETCD_METHODS(DETCD_METHOD_COUNT);
#undef DETCD_METHOD_COUNT

struct MethodInfo {
  std::string_view service;  // `etcdserverpb.KV`
  std::string_view name;     // `Range`
  std::string_view path;     // `/etcdserverpb.KV/Range`
  bool client_streams;
  bool server_streams;
};

const MethodInfo& Info(Method method);

// The method at an HTTP/2 path. nullopt: unknown service or method (UnknownPathText says which).
std::optional<Method> FindMethod(std::string_view path);

// Fresh messages of the method's types, on `arena` when given, else owned by the caller.
google::protobuf::Message* NewRequest(Method method, google::protobuf::Arena* arena);
google::protobuf::Message* NewResponse(Method method, google::protobuf::Arena* arena);

}  // namespace detcd::rpc
