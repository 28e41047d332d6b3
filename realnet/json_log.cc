#include "realnet/json_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace detcd::realnet {
namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarn: return "warn";
    case LogLevel::kError: return "error";
    case LogLevel::kPanic: return "panic";
    case LogLevel::kFatal: return "fatal";
  }
  return "info";
}

// The length of the UTF-8 sequence at the start of `text` (RFC 3629: no overlong forms, surrogates, or beyond
// U+10FFFF); 0 when there is none.
size_t SequenceSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  size_t size = 0;
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    size = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    size = 3;
    if (first == 0xE0) second_min = 0xA0;
    if (first == 0xED) second_max = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    size = 4;
    if (first == 0xF0) second_min = 0x90;
    if (first == 0xF4) second_max = 0x8F;
  }
  if (size == 0 || text.size() < size || byte(1) < second_min || byte(1) > second_max) return 0;
  for (size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return size;
}

void AppendField(std::string& out, const TraceField& field) {
  out += ",\"";
  AppendJsonText(out, field.name);
  out += "\":";
  if (field.is_text) {
    out += '"';
    AppendJsonText(out, field.text);
    out += '"';
    return;
  }
  char digits[24];
  std::snprintf(digits, sizeof(digits), field.is_id ? "\"%lx\"" : "%lu", static_cast<unsigned long>(field.number));
  out += digits;
}

void AppendTime(std::string& out, WallTime time, int64_t offset_seconds) {
  int64_t seconds = time.nanos / 1'000'000'000;
  int64_t nanos = time.nanos % 1'000'000'000;
  if (nanos < 0) {
    nanos += 1'000'000'000;
    --seconds;
  }
  const time_t local = seconds + offset_seconds;
  tm parts = {};
  ::gmtime_r(&local, &parts);
  char text[48];
  out.append(text, ::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts));
  std::snprintf(text, sizeof(text), ".%06d", static_cast<int>(nanos / 1'000));
  out += text;
  if (offset_seconds == 0) {
    out += 'Z';
    return;
  }
  const int minutes = static_cast<int>((offset_seconds < 0 ? -offset_seconds : offset_seconds) / 60);
  std::snprintf(text, sizeof(text), "%c%02d%02d", offset_seconds < 0 ? '-' : '+', minutes / 60, minutes % 60);
  out += text;
}

int64_t OffsetSeconds(WallTime time) {
  const time_t seconds = time.nanos / 1'000'000'000;
  tm parts = {};
  return ::localtime_r(&seconds, &parts) != nullptr ? parts.tm_gmtoff : 0;
}

WallTime WallNow() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

}  // namespace

void AppendJsonText(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t size = SequenceSize(text);
    const char c = text[0];
    if (size == 0) {
      out += "\\ufffd";
    } else if (size > 1) {
      out += text.substr(0, size);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<uint8_t>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
}

void AppendJsonLine(std::string& out, const TraceEvent& event, WallTime time, int64_t offset_seconds) {
  out += "{\"level\":\"";
  out += LevelName(event.level);
  out += "\",\"ts\":\"";
  AppendTime(out, time, offset_seconds);
  out += "\",\"caller\":\"";
  AppendJsonText(out, event.place);
  out += "\",\"msg\":\"";
  AppendJsonText(out, event.message);
  out += '"';
  for (uint64_t i = 0; i < event.field_count; ++i) AppendField(out, event.fields[i]);
  out += '}';
}

JsonLog::JsonLog(int descriptor, LogLevel level) : descriptor_(descriptor), level_(level) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return;
  if (S_ISSOCK(status.st_mode)) {
    kind_ = Kind::kSocket;
  } else if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    kind_ = Kind::kStream;
    // O_NONBLOCK on the descriptor itself would change it for every process that shares it, such as our shell.
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    const int own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) {
      descriptor_ = own;
      owned_ = true;
    }
  }
}

JsonLog::~JsonLog() {
  if (owned_) ::close(descriptor_);
}

ssize_t JsonLog::WriteOnce(std::string_view bytes) {
  if (kind_ == Kind::kSocket) return ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (kind_ == Kind::kStream && !owned_) {
    // The second best: room for one line of usual length.
    pollfd room = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return -1;
  }
  return ::write(descriptor_, bytes.data(), bytes.size());
}

bool JsonLog::WriteLine(std::string_view line) {
  if (!unsent_.empty()) {
    const ssize_t written = WriteOnce(unsent_);
    if (written > 0) unsent_.erase(0, static_cast<size_t>(written));
    if (!unsent_.empty()) return false;
  }
  const ssize_t written = WriteOnce(line);
  if (written <= 0) return false;
  unsent_ = line.substr(static_cast<size_t>(written));
  return true;
}

void JsonLog::Emit(const TraceEvent& event) {
  if (!Wants(event.level)) return;
  const WallTime now = WallNow();
  const int64_t offset = OffsetSeconds(now);
  line_.clear();
  AppendJsonLine(line_, event, now, offset);
  line_ += '\n';
  if (!WriteLine(line_)) {
    ++dropped_;
    return;
  }
  if (dropped_ == 0) return;
  const TraceField count = TraceField::Number("lines", dropped_);
  line_.clear();
  AppendJsonLine(line_, {LogLevel::kWarn, "realnet/json_log", "log lines were dropped", &count, 1}, now, offset);
  line_ += '\n';
  if (WriteLine(line_)) dropped_ = 0;
}

}  // namespace detcd::realnet
