#include "core/rpc/method.h"

#include <array>

#include "core/proto/health.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/proto/v3election.pb.h"
#include "core/proto/v3lock.pb.h"

namespace detcd::rpc {
namespace {

constexpr std::array<MethodInfo, kMethodCount> kInfos = {{
#define DETCD_METHOD_INFO(name, service, method, package, request, response, client_streams, server_streams) \
  {service, method, "/" service "/" method, client_streams, server_streams},
    DETCD_METHODS(DETCD_METHOD_INFO)
#undef DETCD_METHOD_INFO
}};

}  // namespace

const MethodInfo& Info(Method method) { return kInfos[static_cast<size_t>(method)]; }

std::optional<Method> FindMethod(std::string_view path) {
  // Some fifty short strings that differ in length or early: cheaper than a hash of the path.
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].path == path) return static_cast<Method>(i);
  }
  return std::nullopt;
}

google::protobuf::Message* NewRequest(Method method, google::protobuf::Arena* arena) {
  switch (method) {
#define DETCD_METHOD_REQUEST(name, service, method_name, package, request, response, client_streams, server_streams) \
  case Method::name:                                                                                                \
    return google::protobuf::Arena::CreateMessage<package::request>(arena);
    DETCD_METHODS(DETCD_METHOD_REQUEST)
#undef DETCD_METHOD_REQUEST
  }
  return nullptr;
}

google::protobuf::Message* NewResponse(Method method, google::protobuf::Arena* arena) {
  switch (method) {
#define DETCD_METHOD_RESPONSE(name, service, method_name, package, request, response, client_streams, server_streams) \
  case Method::name:                                                                                                 \
    return google::protobuf::Arena::CreateMessage<package::response>(arena);
    DETCD_METHODS(DETCD_METHOD_RESPONSE)
#undef DETCD_METHOD_RESPONSE
  }
  return nullptr;
}

}  // namespace detcd::rpc
