#include "core/wire/http1_server.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/base/time.h"
#include "core/wire/peer_http.h"

namespace detcd::wire {
namespace {

std::string_view ReasonOf(uint16_t status) {
  switch (status) {
    case 200: return "OK";
    case 307: return "Temporary Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Request Entity Too Large";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Status";
  }
}

// The default of etcd's --cors, `*`: any page may read every answer that a handler of the client port gives.
constexpr std::string_view kCorsHeaders =
    "Access-Control-Allow-Headers: accept, content-type, authorization\r\n"
    "Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, DELETE\r\n"
    "Access-Control-Allow-Origin: *\r\n";

std::string Format(const rpc::HttpResponse& response, const Http1Parser& parser, bool head_only, bool keep_alive,
                   WallTime now) {
  const bool http10 = parser.http10();
  std::string out = absl::StrFormat("HTTP/1.%d %d %s\r\n", http10 ? 0 : 1, response.status, ReasonOf(response.status));
  out += kCorsHeaders;
  if (!response.content_type.empty()) absl::StrAppendFormat(&out, "Content-Type: %s\r\n", response.content_type);
  for (const rpc::HttpHeader& header : response.headers) {
    absl::StrAppendFormat(&out, "%s: %s\r\n", header.name, header.value);
  }
  absl::StrAppendFormat(&out, "Date: %s\r\n", FormatHttpDate(now));
  absl::StrAppendFormat(&out, "Content-Length: %d\r\n", response.body.size());
  if (http10 && keep_alive) {
    out += "Connection: keep-alive\r\n";
  } else if (!http10 && !keep_alive) {
    out += "Connection: close\r\n";
  }
  out += "\r\n";
  if (!head_only) out += response.body;
  return out;
}

// Go's answer to bytes that reach no handler: bare, ended by the close, the reason in the status line too.
std::string FormatRefusal(std::string_view reason) {
  return absl::StrFormat(
      "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s", reason, reason);
}

}  // namespace

class Http1Server::Connection final : private StreamListener, private TimerListener {
 public:
  Connection(Http1Server& server, uint32_t number, std::unique_ptr<Stream> stream)
      : server_(server), number_(number), stream_(std::move(stream)) {
    timer_ = server_.clock_.NewTimer(*this, 0);
    timer_->Arm(server_.clock_.Now() + kHttpHeaderTimeout);
    stream_->SetListener(*this);
  }

  uint32_t number() const { return number_; }

  void Respond(uint32_t ordinal, const rpc::HttpResponse& response) {
    if (!handling_ || ordinal != ordinal_) return;
    handling_ = false;
    const bool keep = parser_.keep_alive() && !closing_;
    output_ += Format(response, parser_, parser_.request().method == "HEAD", keep, server_.clock_.Wall());
    if (keep) {
      answered_ = true;  // the next request starts with the turn's end, not inside the handler
    } else {
      closing_ = true;
    }
    server_.MarkDirty(*this);
  }

  // False: over; the server destroys it.
  bool EndTurn() {
    dirty = false;
    // Handlers that answer at once would otherwise nest for each pipelined request.
    while (answered_ && !closing_ && writer_.backlog() + output_.size() < kConnectionWriteBacklogMax) {
      answered_ = false;
      timer_->Arm(server_.clock_.Now() + kHttpHeaderTimeout);
      continue_sent_ = false;
      OnProgress(parser_.Next());
    }
    writer_.Append(Bytes::Copy(output_));
    output_.clear();
    writer_.Flush(*stream_);
    const bool full = parser_.waiting() > kHttpHeaderBytesMax && (handling_ || answered_);
    if (full != paused_) {
      paused_ = full;
      if (full) {
        stream_->PauseReading();
      } else {
        stream_->ResumeReading();
      }
    }
    // What was asked before the client closed its direction is answered, pipelined requests too.
    const bool over = closing_ || (read_ended_ && !answered_);
    if (!over || handling_ || writer_.backlog() > 0) return true;
    stream_->CloseWrite();
    return false;
  }

  // Closes after the answer that is under way.
  void Shutdown() {
    closing_ = true;
    server_.MarkDirty(*this);
  }

  bool dirty = false;

 private:
  void OnConnected() override {}
  void OnData(std::string_view bytes) override {
    if (closing_) return;
    if (handling_ || answered_) {
      parser_.Hold(bytes);
    } else {
      OnProgress(parser_.Feed(bytes));
    }
    server_.MarkDirty(*this);
  }
  void OnReadEnd() override {
    // A client may close its direction and still read the answers to what it has asked.
    read_ended_ = true;
    server_.MarkDirty(*this);
  }
  void OnWritable() override {
    writer_.Unblock();
    server_.MarkDirty(*this);
  }
  void OnClosed(IoError) override { Die(); }
  void OnTimer(uint64_t) override;

  void OnProgress(Http1Parser::State state) {
    switch (state) {
      case Http1Parser::State::kHead:
        return;
      case Http1Parser::State::kBody:
        if (parser_.expects_continue() && !std::exchange(continue_sent_, true)) {
          output_ += "HTTP/1.1 100 Continue\r\n\r\n";
        }
        return;
      case Http1Parser::State::kDone:
        timer_->Disarm();
        if (!parser_.http10() && !parser_.request().HasHeader("host")) {
          return Refuse("400 Bad Request: missing required Host header");
        }
        handling_ = true;
        ++ordinal_;
        if (parser_.request().method == "OPTIONS") return Respond(ordinal_, {.content_type = ""});
        server_.handler_.Handle(server_, uint64_t{number_} << 32 | ordinal_, parser_.request());
        return;
      case Http1Parser::State::kFailed:
        return Refuse(absl::StrFormat("%d %s", parser_.failure_status(), ReasonOf(parser_.failure_status())));
    }
  }

  void Refuse(std::string_view reason) {
    closing_ = true;
    output_ += FormatRefusal(reason);
  }

  void Die() {
    if (handling_) server_.handler_.Abandon(uint64_t{number_} << 32 | ordinal_);
    server_.connections_.erase(number_);
  }

  Http1Server& server_;
  const uint32_t number_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Timer> timer_;
  Http1Parser parser_;
  StreamWriter writer_;
  std::string output_;           // of this turn
  uint32_t ordinal_ = 0;         // of the request under way or the latest
  bool handling_ = false;        // the handler owes an answer
  bool answered_ = false;        // the next request may start
  bool continue_sent_ = false;
  bool closing_ = false;         // closes when all is sent
  bool read_ended_ = false;      // nothing more comes; what waits is still served
  bool paused_ = false;
};

void Http1Server::Connection::OnTimer(uint64_t) {
  if (handling_) return;
  PROBE("wire.http1_head_timeout");
  Die();
}

Http1Server::Http1Server(Clock& clock, rpc::HttpHandler& handler) : clock_(clock), handler_(handler) {}
Http1Server::~Http1Server() = default;

void Http1Server::Accept(std::unique_ptr<Stream> stream) {
  const uint32_t number = ++last_number_;
  CHECK_MSG(number != 0, "four billion connections in one incarnation");
  auto connection = std::make_unique<Connection>(*this, number, std::move(stream));
  Connection& accepted = *connection;
  connections_.emplace(number, std::move(connection));
  if (shutting_down_) accepted.Shutdown();
}

void Http1Server::EndTurn() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    const auto found = connections_.find(dirty_[i]);
    if (found != connections_.end() && !found->second->EndTurn()) connections_.erase(found);
  }
  dirty_.clear();
}

void Http1Server::Shutdown() {
  shutting_down_ = true;
  for (auto& [number, connection] : connections_) connection->Shutdown();
}

void Http1Server::Respond(rpc::HttpRequestId id, rpc::HttpResponse response) {
  const auto found = connections_.find(static_cast<uint32_t>(id >> 32));
  if (found != connections_.end()) found->second->Respond(static_cast<uint32_t>(id), response);
}

void Http1Server::MarkDirty(Connection& connection) {
  if (std::exchange(connection.dirty, true)) return;
  dirty_.push_back(connection.number());
}

}  // namespace detcd::wire
