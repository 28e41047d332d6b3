// HTTP/1.x requests (RFC 9112) out of bytes. Boost.Beast does the parsing, in the .cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rpc/http.h"

namespace detcd::wire {

// One request after another of one connection. Bytes behind a whole request wait for Next.
class Http1Parser {
 public:
  enum class State : uint8_t {
    kHead,     // in or before the head
    kBody,     // the head is whole
    kDone,     // the request is whole: see request()
    kFailed,   // not HTTP, or a limit was passed: answer failure_status() and close
  };

  Http1Parser();
  ~Http1Parser();

  // Takes the next bytes (all of them; at most one request is parsed).
  State Feed(std::string_view bytes);
  // Keeps bytes that came while a request is being answered.
  void Hold(std::string_view bytes) { input_.append(bytes); }
  // Forgets the request and goes on with what waits.
  State Next();

  State state() const { return state_; }
  rpc::HttpRequest& request();
  bool keep_alive() const;              // as the request wants it
  bool http10() const;
  bool expects_continue() const;        // `Expect: 100-continue`: the client waits for an interim answer
  bool started() const;                 // bytes of a request came
  size_t waiting() const { return input_.size(); }
  uint16_t failure_status() const { return failure_status_; }   // 400, 413 or 431

 private:
  class Parser;

  State Parse();

  std::unique_ptr<Parser> parser_;
  std::string input_;                   // bytes not yet taken by the parser
  State state_ = State::kHead;
  uint16_t failure_status_ = 0;
};

}  // namespace detcd::wire
