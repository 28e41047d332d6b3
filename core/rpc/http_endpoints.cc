#include "core/rpc/http_endpoints.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/maintenance_service.h"

namespace detcd::rpc {
namespace {

HttpResponse Healthy() { return {.body = R"({"health":"true","reason":""})"}; }

// `reason` is one of our own texts: nothing in it needs escaping.
HttpResponse Unhealthy(std::string_view reason) {
  return HttpError(503, absl::StrFormat(R"({"health":"false","reason":"%s"})", reason));
}

std::optional<unsigned> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// Undoes the escapes of a query's name or value. nullopt: a broken escape.
std::optional<std::string> Unescape(std::string_view escaped) {
  std::string out;
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] == '+') {
      out += ' ';
    } else if (escaped[i] != '%') {
      out += escaped[i];
    } else {
      if (escaped.size() - i < 3) return std::nullopt;
      const auto high = HexDigit(escaped[i + 1]);
      const auto low = HexDigit(escaped[i + 2]);
      if (!high || !low) return std::nullopt;
      out += static_cast<char>(*high << 4 | *low);
      i += 2;
    }
  }
  return out;
}

// Calls visit(value) for the values of `name` in a query until it says true, and tells whether it did. As in Go, a pair
// with a broken escape or a semicolon is passed over.
template <class Visit>
bool AnyQueryValue(std::string_view query, std::string_view name, Visit&& visit) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (pair.find(';') != std::string_view::npos) continue;
    const size_t equals = pair.find('=');
    const auto key = Unescape(pair.substr(0, equals));
    if (!key || *key != name) continue;
    const auto value = Unescape(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
    if (value && visit(*value)) return true;
  }
  return false;
}

// The first value of `name`; empty when there is none.
std::string QueryValue(std::string_view query, std::string_view name) {
  std::string first;
  AnyQueryValue(query, name, [&](const std::string& value) {
    first = value;
    return true;
  });
  return first;
}

bool HasQueryValue(std::string_view query, std::string_view name, std::string_view wanted) {
  return AnyQueryValue(query, name, [&](const std::string& value) { return value == wanted; });
}

}  // namespace

void HttpEndpoints::Handle(HttpResponder& responder, HttpRequestId id, const HttpRequest& request) {
  const bool health = request.path() == "/health";
  if (!health && request.path() != "/version") return responder.Respond(id, NotFound());
  if (request.method != "GET") return responder.Respond(id, MethodNotAllowed());
  if (health) return HandleHealth(responder, id, request.query());
  responder.Respond(id, Version());
}

// Alarms first; then a known leader and a read, which is linearizable unless the query says otherwise.
void HttpEndpoints::HandleHealth(HttpResponder& responder, HttpRequestId id, std::string_view query) {
  for (const Alarm& alarm : backend_.Status().alarms) {
    const std::string name = AlarmName(alarm.type);
    if (HasQueryValue(query, "exclude", name)) continue;
    const bool known = alarm.type == etcdserverpb::NOSPACE || alarm.type == etcdserverpb::CORRUPT;
    return responder.Respond(id, Unhealthy(absl::StrFormat("ALARM %s", known ? name : "UNKNOWN")));
  }
  if (QueryValue(query, "serializable") == "true") return responder.Respond(id, Healthy());
  if (!backend_.HasLeader()) return responder.Respond(id, Unhealthy("RAFT NO LEADER"));
  if (waiting_.size() >= kReadsInFlightMax) {
    PROBE("rpc.too_many_health_requests");
    return responder.Respond(id, Unhealthy(absl::StrFormat("RANGE ERROR:%s", TextOf(ApiError::kTooManyRequests))));
  }
  const uint64_t token = next_token_++;
  waiting_.emplace(token, WaitingRequest{&responder, id});
  backend_.LinearizableRead(Waiter{.transport = nullptr, .call = token}, *this, token);
}

void HttpEndpoints::Abandon(HttpRequestId id) {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->second.id != id) continue;
    waiting_.erase(it);
    return;
  }
}

// The read itself, of one absent key with keys only, cannot fail once its index is reached.
void HttpEndpoints::OnReadReady(const Waiter&, uint64_t token, ApiError error) {
  auto it = waiting_.find(token);
  if (it == waiting_.end()) return;
  const WaitingRequest waiting = it->second;
  waiting_.erase(it);
  waiting.responder->Respond(
      waiting.id, error == ApiError::kOk ? Healthy() : Unhealthy(absl::StrFormat("RANGE ERROR:%s", TextOf(error))));
}

HttpResponse HttpEndpoints::Version() const {
  const std::string storage = backend_.Status().storage_version;
  const std::string cluster = backend_.ClusterVersion();
  return {.content_type = "application/json",
          .body = absl::StrFormat(R"({"etcdserver":"%s","etcdcluster":"%s","storage":"%s"})", kServerVersion,
                                  cluster.empty() ? "not_decided" : cluster,
                                  storage.empty() ? "unknown" : storage)};
}

}  // namespace detcd::rpc
