#include "core/wire/request_head.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/rpc/api_error.h"
#include "core/wire/grpc_format.h"

namespace detcd::wire {
namespace {

using rpc::StatusCode;

constexpr size_t kFieldOverhead = 32;  // RFC 9113 §6.5.2
constexpr std::string_view kGrpcType = "application/grpc";
constexpr std::string_view kBinarySuffix = "-bin";

constexpr std::array<std::string_view, 5> kPseudoNames = {":method", ":path", ":scheme", ":authority", ":protocol"};
constexpr uint8_t kMethodBit = 1 << 0;
constexpr uint8_t kPathBit = 1 << 1;
constexpr uint8_t kSchemeBit = 1 << 2;
constexpr uint8_t kAuthorityBit = 1 << 3;

// Bytes of a field name: `token` of RFC 9110 §5.6.2 without capitals (RFC 9113 §8.2.1).
constexpr std::array<bool, 256> kNameBytes = [] {
  std::array<bool, 256> good = {};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")) {
    good[static_cast<uint8_t>(c)] = true;
  }
  return good;
}();

bool IsName(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return kNameBytes[static_cast<uint8_t>(c)]; });
}

bool IsValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return (byte >= 0x20 && byte != 0x7F) || byte == '\t';
  });
}

bool IsBase64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

// Where `text` stops being base64, padded when its length is a multiple of four, else without padding; nullopt when it
// is all good.
std::optional<size_t> Base64Error(std::string_view text) {
  std::string_view digits = text;
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && digits.ends_with('='); ++i) digits.remove_suffix(1);
  }
  for (size_t i = 0; i < digits.size(); ++i) {
    if (!IsBase64(digits[i])) return i;
  }
  return digits.size() % 4 == 1 ? std::optional<size_t>(digits.size() - 1) : std::nullopt;
}

// Why no method is at `path`, in grpc-go's words.
std::string UnknownPathText(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path[0] != '/' || slash == 0) return absl::StrFormat("malformed method name: \"%s\"", path);
  const std::string_view service = path.substr(1, slash - 1);
  for (uint16_t i = 0; i < rpc::kMethodCount; ++i) {
    if (rpc::Info(static_cast<rpc::Method>(i)).service == service) {
      return absl::StrFormat("unknown method %s for service %s", path.substr(slash + 1), service);
    }
  }
  return absl::StrFormat("unknown service %s", service);
}

}  // namespace

bool IsTrailerField(std::string_view name, std::string_view value) { return IsName(name) && IsValue(value); }

void RequestHead::Add(std::string_view name, std::string_view value) {
  bytes_ += name.size() + value.size() + kFieldOverhead;
  if (malformed_ || bytes_ > kHttpHeaderBytesMax) return;
  if (!IsValue(value)) {
    malformed_ = true;
    return;
  }
  if (name.starts_with(':')) return AddPseudo(name, value);
  regular_seen_ = true;
  if (!IsName(name)) {
    malformed_ = true;
  } else if (name == "content-type") {
    AddContentType(value);
  } else if (name == "grpc-timeout") {
    std::variant<Duration, std::string> timeout = ParseTimeout(value);
    if (const auto* length = std::get_if<Duration>(&timeout)) {
      timeout_ = *length;
    } else {
      field_error_ = "malformed grpc-timeout: " + std::get<std::string>(timeout);
    }
  } else if (name == "grpc-encoding") {
    encoding_ = value == "identity" ? std::string_view() : value;
  } else if (name == "hasleader") {
    context_.has_leader = value == "true";
  } else if (name == "token") {
    has_token_ = true;
    context_.token = value;
  } else if (name == "authorization") {
    if (!has_token_) context_.token = value;
  } else if (name == "client-api-version") {
    context_.client_api_version = value;
  } else if (name == "connection") {
    connection_seen_ = true;
  } else if (name == "host") {
    ++host_count_;
  } else if (name.ends_with(kBinarySuffix)) {
    AddBinary(name, value);
  }
}

void RequestHead::AddPseudo(std::string_view name, std::string_view value) {
  const auto found = std::find(kPseudoNames.begin(), kPseudoNames.end(), name);
  const auto bit = static_cast<uint8_t>(1 << (found - kPseudoNames.begin()));
  if (found == kPseudoNames.end() || regular_seen_ || (pseudo_seen_ & bit) != 0) {
    malformed_ = true;
    return;
  }
  pseudo_seen_ |= bit;
  if (bit == kPathBit) {
    known_method_ = rpc::FindMethod(value);
    if (known_method_.has_value()) context_.method = *known_method_;
    path_ = value;
  } else if (bit == kMethodBit) {
    is_post_ = value == "POST";
    if (!is_post_) http_method_ = value;
  }
}

void RequestHead::AddContentType(std::string_view value) {
  if (!IsGrpcContentType(value)) {
    wrong_type_ = value;
    return;
  }
  is_grpc_ = true;
  const std::string_view subtype = value.size() == kGrpcType.size() ? "" : value.substr(kGrpcType.size() + 1);
  answer_type_ = subtype.empty() ? std::string() : absl::StrFormat("%s+%s", kGrpcType, subtype);
}

void RequestHead::AddBinary(std::string_view name, std::string_view value) {
  if (const std::optional<size_t> at = Base64Error(value)) {
    field_error_ = absl::StrFormat(
        "malformed binary metadata \"%s\" in header \"%s\": illegal base64 data at input byte %d", value, name, *at);
  }
}

std::variant<std::monostate, HeadRefusal, MalformedHead> RequestHead::Judge() const {
  constexpr uint8_t kNeeded = kMethodBit | kPathBit | kSchemeBit;
  if (malformed_) {
    PROBE("wire.malformed_head");
    return MalformedHead{};
  }
  if (bytes_ > kHttpHeaderBytesMax) {
    PROBE("wire.head_too_large");
    return HeadRefusal{"431", StatusCode::kResourceExhausted,
                       absl::StrFormat("header list size %d exceeds %d", bytes_, kHttpHeaderBytesMax)};
  }
  if ((pseudo_seen_ & kNeeded) != kNeeded) return MalformedHead{};
  const bool has_authority = (pseudo_seen_ & kAuthorityBit) != 0;
  if (host_count_ > 1) {
    return HeadRefusal{
        "400", StatusCode::kInternal,
        absl::StrFormat("num values of :authority: %d, num values of host: %d, both must only have 1 value "
                        "as per HTTP/2 spec",
                        has_authority ? 1 : 0, host_count_)};
  }
  if (connection_seen_) return MalformedHead{};
  if (!is_grpc_) {
    return HeadRefusal{"415", StatusCode::kInvalidArgument,
                       absl::StrFormat("invalid gRPC request content-type \"%s\"", wrong_type_)};
  }
  if (!field_error_.empty()) return HeadRefusal{"400", StatusCode::kInternal, field_error_};
  if (!has_authority && host_count_ == 0) {
    return HeadRefusal{"400", StatusCode::kInternal, "no host or :authority header present"};
  }
  if (!is_post_) {
    return HeadRefusal{
        "405", StatusCode::kInternal,
        absl::StrFormat("Received a HEADERS frame with :method \"%s\" which should be POST", http_method_)};
  }
  if (timeout_.has_value() && *timeout_ <= Duration{}) {
    constexpr rpc::ApiError kLate = rpc::ApiError::kContextDeadlineExceeded;
    return HeadRefusal{"200", rpc::CodeOf(kLate), std::string(rpc::TextOf(kLate))};
  }
  if (!known_method_.has_value()) return HeadRefusal{"200", StatusCode::kUnimplemented, UnknownPathText(path_)};
  if (!encoding_.empty() && !gzip()) {
    return HeadRefusal{"200", StatusCode::kUnimplemented,
                       absl::StrFormat("grpc: Decompressor is not installed for grpc-encoding \"%s\"", encoding_)};
  }
  return {};
}

}  // namespace detcd::wire
