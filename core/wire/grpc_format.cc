#include "core/wire/grpc_format.h"

#include <google/protobuf/message.h>

#include <limits>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/rpc/utf8.h"
#include "core/wire/gzip.h"

namespace detcd::wire {
namespace {

struct TimeUnit {
  char name;
  int64_t nanos;
};

constexpr std::array<TimeUnit, 6> kTimeUnits = {{{'n', 1},
                                                 {'u', 1'000},
                                                 {'m', 1'000'000},
                                                 {'S', 1'000'000'000},
                                                 {'M', 60'000'000'000},
                                                 {'H', 3'600'000'000'000}}};
constexpr int64_t kTimeoutDigitsMax = 99'999'999;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// A message of `size` bytes, not compressed.
void WritePrefix(size_t size, char* out) {
  out[0] = 0;
  for (size_t i = 0; i < 4; ++i) out[1 + i] = static_cast<char>(size >> (24 - 8 * i) & 0xFF);
}

}  // namespace

size_t AppendMessage(const google::protobuf::Message& message, std::string& body) {
  const size_t size = message.ByteSizeLong();
  CHECK(size <= std::numeric_limits<int32_t>::max());  // protobuf's own limit on a message
  const size_t start = body.size();
  body.resize(start + kMessagePrefixBytes + size);
  WritePrefix(size, body.data() + start);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(body.data() + start + kMessagePrefixBytes));
  return kMessagePrefixBytes + size;
}

size_t AppendPrefix(size_t size, std::string& body) {
  CHECK(size <= std::numeric_limits<uint32_t>::max());
  body.resize(body.size() + kMessagePrefixBytes);
  WritePrefix(size, body.data() + body.size() - kMessagePrefixBytes);
  return kMessagePrefixBytes;
}

size_t AppendGzipMessage(const google::protobuf::Message& message, Gzip& gzip, std::string& body) {
  return AppendGzipMessage(message.SerializeAsString(), gzip, body);
}

size_t AppendGzipMessage(std::string_view plain, Gzip& gzip, std::string& body) {
  if (plain.empty()) return AppendPrefix(0, body);
  const size_t start = body.size();
  body.resize(start + kMessagePrefixBytes);
  gzip.Compress(plain, body);
  const size_t size = body.size() - start - kMessagePrefixBytes;
  CHECK(size <= std::numeric_limits<uint32_t>::max());
  body[start] = 1;
  for (size_t i = 0; i < 4; ++i) body[start + 1 + i] = static_cast<char>(size >> (24 - 8 * i) & 0xFF);
  return kMessagePrefixBytes + size;
}

void MessageReader::Clear(size_t keep_bytes) {
  prefix_size_ = 0;
  payload_.clear();
  if (payload_.capacity() > keep_bytes) std::string().swap(payload_);
}

std::variant<Duration, std::string> ParseTimeout(std::string_view text) {
  if (text.size() < 2) return absl::StrFormat("transport: timeout string is too short: \"%s\"", text);
  if (text.size() > 9) return absl::StrFormat("transport: timeout string is too long: \"%s\"", text);
  int64_t unit_nanos = 0;
  for (const TimeUnit& unit : kTimeUnits) {
    if (unit.name == text.back()) unit_nanos = unit.nanos;
  }
  if (unit_nanos == 0) return absl::StrFormat("transport: timeout unit is not recognized: \"%s\"", text);
  const std::string_view digits = text.substr(0, text.size() - 1);
  int64_t count = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return absl::StrFormat("strconv.ParseUint: parsing \"%s\": invalid syntax", digits);
    count = count * 10 + (c - '0');
  }
  if (count > kTimeoutMax.nanos / unit_nanos) return kTimeoutMax;
  return Nanos(count * unit_nanos);
}

std::string FormatTimeout(Duration timeout) {
  if (timeout.nanos <= 0) return "1n";
  for (const TimeUnit& unit : kTimeUnits) {
    const int64_t count = timeout.nanos / unit.nanos + (timeout.nanos % unit.nanos != 0 ? 1 : 0);
    if (count <= kTimeoutDigitsMax) return absl::StrFormat("%d%c", count, unit.name);
  }
  return "99999999H";
}

std::string EncodePercent(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

std::string RepairUtf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t size = 1;
    while (size <= 4 && size <= text.size() && !rpc::IsUtf8(text.substr(0, size))) ++size;
    const bool good = size <= 4 && size <= text.size();
    out += good ? text.substr(0, size) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(good ? size : 1);
  }
  return out;
}

std::string DecodePercent(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low >= 0) {
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool IsGrpcContentType(std::string_view content_type) {
  constexpr std::string_view kBase = "application/grpc";
  if (!content_type.starts_with(kBase)) return false;
  return content_type.size() == kBase.size() || content_type[kBase.size()] == '+' || content_type[kBase.size()] == ';';
}

}  // namespace detcd::wire
