#include "core/wire/peer_http.h"

#include <algorithm>
#include <charconv>

#include "core/base/limits.h"
#include "core/base/status.h"

namespace detcd::wire {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view TrimBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool IsTokenCharacter(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool IsToken(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenCharacter); }

// Visible characters and bytes above ASCII: what a target or a value may have besides blanks.
bool IsVisible(char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; }

// Takes the text before the next CRLF off the front.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  return line;
}

bool ParseHeaders(std::string_view text, std::vector<HttpHeader>& headers) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.empty()) return text.empty();
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) return false;
    const std::string_view value = TrimBlanks(line.substr(colon + 1));
    const auto is_allowed = [](char c) { return IsVisible(c) || c == ' ' || c == '\t'; };
    if (!std::all_of(value.begin(), value.end(), is_allowed)) return false;
    headers.push_back({.name = std::string(line.substr(0, colon)), .value = std::string(value)});
  }
  return false;
}

std::optional<HttpHeadError> CheckVersion(std::string_view word) {
  if (word == "HTTP/1.1") return std::nullopt;
  return word.starts_with("HTTP/") ? HttpHeadError::kVersion : HttpHeadError::kMalformed;
}

std::optional<HttpBodyFraming> BodyFraming(const HttpFields& fields) {
  HttpBodyFraming framing{.until_close = true};
  size_t lengths = 0;
  size_t codings = 0;
  for (const HttpHeader& header : fields.headers) {
    if (EqualsIgnoringCase(header.name, "Content-Length")) {
      ++lengths;
      const char* end = header.value.data() + header.value.size();
      const auto [stop, error] = std::from_chars(header.value.data(), end, framing.content_length);
      if (error != std::errc() || stop != end) return std::nullopt;
    } else if (EqualsIgnoringCase(header.name, "Transfer-Encoding")) {
      ++codings;
      if (!EqualsIgnoringCase(header.value, "chunked")) return std::nullopt;
    }
  }
  if (lengths + codings > 1) return std::nullopt;  // request smuggling (RFC 9112 §6.3)
  framing.is_chunked = codings == 1;
  framing.until_close = lengths + codings == 0;
  return framing;
}

// The date of a day number since 1970-01-01 in the Gregorian calendar. Eras of 400 years start on March 1st, so that
// the day that leap years add is the last of its year.
struct CivilDate {
  int64_t year;
  int64_t month;
  int64_t day;
};
CivilDate CivilFromDays(int64_t days) {
  constexpr int64_t kDaysBeforeEpoch = 719'468;  // from 0000-03-01
  constexpr int64_t kDaysOfEra = 146'097;
  const int64_t shifted = days + kDaysBeforeEpoch;
  const int64_t era = (shifted >= 0 ? shifted : shifted - (kDaysOfEra - 1)) / kDaysOfEra;
  const int64_t day_of_era = shifted - era * kDaysOfEra;
  const int64_t year_of_era = (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted_month = (5 * day_of_year + 2) / 153;  // 0 is March
  const int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {.year = year_of_era + era * 400 + (month <= 2 ? 1 : 0),
          .month = month,
          .day = day_of_year - (153 * shifted_month + 2) / 5 + 1};
}

struct CivilTime {
  CivilDate date;
  int64_t days;
  int64_t second_of_day;
  int64_t nanos;
};
CivilTime CivilFrom(WallTime time) {
  constexpr int64_t kNanosOfSecond = 1'000'000'000;
  constexpr int64_t kSecondsOfDay = 86'400;
  int64_t seconds = time.nanos / kNanosOfSecond;
  int64_t nanos = time.nanos % kNanosOfSecond;
  if (nanos < 0) nanos += kNanosOfSecond, --seconds;
  int64_t days = seconds / kSecondsOfDay;
  int64_t second_of_day = seconds % kSecondsOfDay;
  if (second_of_day < 0) second_of_day += kSecondsOfDay, --days;
  return {.date = CivilFromDays(days), .days = days, .second_of_day = second_of_day, .nanos = nanos};
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 410: return "Gone";
    case 412: return "Precondition Failed";
    case 413: return "Request Entity Too Large";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
  }
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::optional<std::string_view> HttpFields::Find(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (EqualsIgnoringCase(header.name, name)) return header.value;
  }
  return std::nullopt;
}

bool HttpFields::HasToken(std::string_view name, std::string_view token) const {
  for (const HttpHeader& header : headers) {
    if (!EqualsIgnoringCase(header.name, name)) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      if (EqualsIgnoringCase(TrimBlanks(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
  }
  return false;
}

std::optional<HttpBodyFraming> RequestBodyFraming(const HttpRequestHead& head) {
  std::optional<HttpBodyFraming> framing = BodyFraming(head);
  if (framing) framing->until_close = false;  // a request without both has no body
  return framing;
}

std::optional<HttpBodyFraming> ResponseBodyFraming(const HttpResponseHead& head) {
  if (head.status == 204) return HttpBodyFraming{};
  return BodyFraming(head);
}

HttpHeadReader::Step HttpHeadReader::Next(std::string_view& input) {
  const size_t before = text_.size();
  const size_t taken = std::min(input.size(), kHttpHeaderBytesMax - before);
  text_.append(input.substr(0, taken));
  // The end may begin in bytes that were there before.
  const size_t end = text_.find(kHeadEnd, before < kHeadEnd.size() ? 0 : before - (kHeadEnd.size() - 1));
  if (end != std::string::npos) {
    input.remove_prefix(end + kHeadEnd.size() - before);
    text_.resize(end + kHeadEnd.size());
    return Step::kHead;
  }
  input.remove_prefix(taken);
  return text_.size() == kHttpHeaderBytesMax ? Step::kTooLarge : Step::kNeedMore;
}

std::optional<HttpHeadError> ParseRequestHead(std::string_view text, HttpRequestHead& head) {
  head = {};
  const std::string_view line = TakeLine(text);
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == std::string_view::npos || first == second) return HttpHeadError::kMalformed;
  head.method = std::string(line.substr(0, first));
  head.target = std::string(line.substr(first + 1, second - first - 1));
  if (!IsToken(head.method) || head.target.empty()) return HttpHeadError::kMalformed;
  if (!std::all_of(head.target.begin(), head.target.end(), IsVisible)) return HttpHeadError::kMalformed;
  if (const auto error = CheckVersion(line.substr(second + 1))) return error;
  if (!ParseHeaders(text, head.headers)) return HttpHeadError::kMalformed;
  return std::nullopt;
}

std::optional<HttpHeadError> ParseResponseHead(std::string_view text, HttpResponseHead& head) {
  head = {};
  const std::string_view line = TakeLine(text);
  const size_t first = line.find(' ');
  if (first == std::string_view::npos) return HttpHeadError::kMalformed;
  if (const auto error = CheckVersion(line.substr(0, first))) return error;
  const std::string_view code = line.substr(first + 1, 3);
  const auto [stop, error] = std::from_chars(code.data(), code.data() + code.size(), head.status);
  if (error != std::errc() || stop != code.data() + code.size() || head.status < 100) return HttpHeadError::kMalformed;
  if (line.size() > first + 4 && line[first + 4] != ' ') return HttpHeadError::kMalformed;
  if (!ParseHeaders(text, head.headers)) return HttpHeadError::kMalformed;
  return std::nullopt;
}

HttpBodyReader::Step HttpBodyReader::Next(std::string_view& input, std::string_view& content) {
  if (framing_.is_chunked) {
    switch (chunked_.Next(input, content)) {
      case ChunkedDecoder::Step::kContent: return Step::kContent;
      case ChunkedDecoder::Step::kNeedMore: return Step::kNeedMore;
      case ChunkedDecoder::Step::kEnd: return Step::kEnd;
      case ChunkedDecoder::Step::kMalformed: return Step::kMalformed;
    }
  }
  if (!framing_.until_close && remaining_ == 0) return Step::kEnd;
  if (input.empty()) return Step::kNeedMore;
  const size_t size = framing_.until_close ? input.size() : std::min<uint64_t>(input.size(), remaining_);
  content = input.substr(0, size);
  input.remove_prefix(size);
  if (!framing_.until_close) remaining_ -= size;
  return Step::kContent;
}

HttpAnswer TextAnswer(int status, std::string_view text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::string(text) + "\n"};
}

std::string WriteResponseHead(int status, const std::vector<HttpHeader>& headers, WallTime date) {
  std::string out = absl::StrFormat("HTTP/1.1 %d %s\r\n", status, ReasonPhrase(status));
  for (const HttpHeader& header : headers) AppendHeader(out, header.name, header.value);
  AppendHeader(out, "Date", FormatHttpDate(date));
  out.append("\r\n");
  return out;
}

std::string WriteAnswer(const HttpAnswer& answer, WallTime date, bool is_head_request) {
  std::vector<HttpHeader> headers = answer.headers;
  if (answer.status != 204) headers.push_back({"Content-Length", std::to_string(answer.body.size())});
  std::string out = WriteResponseHead(answer.status, headers, date);
  if (answer.status != 204 && !is_head_request) out.append(answer.body);
  return out;
}

std::string WriteRequestHead(std::string_view method, std::string_view target, const std::vector<HttpHeader>& headers) {
  std::string out = absl::StrFormat("%s %s HTTP/1.1\r\n", method, target);
  for (const HttpHeader& header : headers) AppendHeader(out, header.name, header.value);
  out.append("\r\n");
  return out;
}

std::string FormatHttpDate(WallTime time) {
  constexpr const char* kDayNames[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};  // 1970-01-01 was a Thursday
  constexpr const char* kMonthNames[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const CivilTime civil = CivilFrom(time);
  const int64_t weekday = ((civil.days % 7) + 7) % 7;
  return absl::StrFormat("%s, %02d %s %04d %02d:%02d:%02d GMT", kDayNames[weekday], civil.date.day,
                         kMonthNames[civil.date.month - 1], civil.date.year, civil.second_of_day / 3'600,
                         civil.second_of_day / 60 % 60, civil.second_of_day % 60);
}

std::string FormatRfc3339(WallTime time) {
  const CivilTime civil = CivilFrom(time);
  std::string out = absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d", civil.date.year, civil.date.month, civil.date.day,
                                    civil.second_of_day / 3'600, civil.second_of_day / 60 % 60,
                                    civil.second_of_day % 60);
  if (civil.nanos != 0) {
    std::string fraction = absl::StrFormat(".%09d", civil.nanos);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    out.append(fraction);
  }
  return out.append("Z");
}

}  // namespace detcd::wire
