#include "core/wire/http1_parser.h"

// This file is compiled with exceptions, because Boost is. The paths used here report by error codes and throw nothing.
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "core/base/check.h"
#include "core/base/limits.h"

namespace detcd::wire {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string Text(beast::string_view view) { return {view.data(), view.size()}; }

}  // namespace

class Http1Parser::Parser final : public http::basic_parser<true> {
 public:
  Parser() {
    header_limit(static_cast<uint32_t>(kHttpHeaderBytesMax));
    body_limit(uint64_t{kHttpBodyBytesMax});
  }

  rpc::HttpRequest request;
  int version = 11;

 private:
  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int http_version,
                       beast::error_code&) override {
    request.method = Text(method);
    request.target = Text(target);
    version = http_version;
  }
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_field_impl(http::field, beast::string_view name, beast::string_view value, beast::error_code&) override {
    request.headers.push_back({Text(name), Text(value)});
  }
  void on_header_impl(beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, beast::error_code&) override {}
  size_t on_body_impl(beast::string_view body, beast::error_code&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(uint64_t, beast::string_view, beast::error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, beast::string_view body, beast::error_code&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(beast::error_code&) override {}
};

Http1Parser::Http1Parser() : parser_(std::make_unique<Parser>()) {}
Http1Parser::~Http1Parser() = default;

rpc::HttpRequest& Http1Parser::request() { return parser_->request; }
bool Http1Parser::keep_alive() const { return parser_->keep_alive(); }
bool Http1Parser::http10() const { return parser_->version < 11; }
bool Http1Parser::expects_continue() const {
  const std::string_view expected = parser_->request.Header("expect");
  return !http10() && beast::iequals({expected.data(), expected.size()}, "100-continue");
}
bool Http1Parser::started() const { return parser_->got_some() || !input_.empty(); }

Http1Parser::State Http1Parser::Feed(std::string_view bytes) {
  input_.append(bytes);
  return Parse();
}

Http1Parser::State Http1Parser::Next() {
  CHECK(state_ == State::kDone);
  parser_ = std::make_unique<Parser>();
  state_ = State::kHead;
  return Parse();
}

Http1Parser::State Http1Parser::Parse() {
  while (!input_.empty() && (state_ == State::kHead || state_ == State::kBody)) {
    beast::error_code error;
    const size_t taken = parser_->put(boost::asio::buffer(input_.data(), input_.size()), error);
    input_.erase(0, taken);
    if (error == http::error::need_more) {
      // A head is parsed once it is whole; until then its bytes wait here, within the limit.
      if (state_ == State::kHead && !parser_->is_header_done() && input_.size() > kHttpHeaderBytesMax) {
        error = http::error::header_limit;
      } else {
        error = {};
        if (taken == 0) break;
      }
    }
    if (error) {
      failure_status_ = error == http::error::header_limit ? 431 : error == http::error::body_limit ? 413 : 400;
      state_ = State::kFailed;
      input_.clear();
      return state_;
    }
    if (parser_->is_header_done()) state_ = State::kBody;
    if (parser_->is_done()) state_ = State::kDone;
  }
  return state_;
}

}  // namespace detcd::wire
