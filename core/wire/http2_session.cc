#include "core/wire/http2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"

namespace detcd::wire {
namespace {

constexpr size_t kHeadersMax = 16;              // fields that we ever send in one block
constexpr size_t kFrameHeaderBytes = 9;         // RFC 9113 §4.1
constexpr size_t kBodyCompactBytes = 65'536;    // framed bytes kept before they are cut off the buffer's front
constexpr uint32_t kMaxFrameSize = 16'384;

// Fills `out` with nghttp2's form of `headers`. Names last by contract.
size_t Convert(std::span<const Http2Header> headers, std::array<nghttp2_nv, kHeadersMax>& out) {
  CHECK(headers.size() <= kHeadersMax);
  size_t count = 0;
  for (const Http2Header& header : headers) {
    nghttp2_nv& nv = out[count++];
    nv.name = reinterpret_cast<uint8_t*>(const_cast<char*>(header.name.data()));
    nv.namelen = header.name.size();
    nv.value = reinterpret_cast<uint8_t*>(const_cast<char*>(header.value.data()));
    nv.valuelen = header.value.size();
    nv.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
    if (header.lasting) nv.flags |= NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  }
  return count;
}

std::string_view View(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Errors of submit calls other than exhaustion of memory mean that the session is ending; the frame has no use then.
void Submitted(int result) { CHECK(result != NGHTTP2_ERR_NOMEM); }

}  // namespace

void Http2Stream::SetPieces(std::vector<Bytes> rest) {
  CHECK(pieces.empty());
  pieces = std::move(rest);
  for (const Bytes& each : pieces) pieces_bytes += each.size();
}

void Http2Stream::TakeBody(size_t size, std::string& out) {
  const size_t first = std::min(size, outgoing.size() - framed);
  out.append(outgoing, framed, first);
  framed += first;
  if (framed == outgoing.size()) {
    outgoing.clear();
    framed = 0;
  } else if (framed >= kBodyCompactBytes && framed >= outgoing.size() - framed) {
    outgoing.erase(0, framed);
    framed = 0;
  }
  for (size_t left = size - first; left > 0;) {
    Bytes& next = pieces[piece];
    const std::string_view part = next.view().substr(piece_framed, left);
    out += part;
    left -= part.size();
    pieces_bytes -= part.size();
    piece_framed += part.size();
    if (piece_framed < next.size()) return;
    next = Bytes();
    ++piece;
    piece_framed = 0;
  }
}

struct Http2Session::Callbacks {
  static Http2Session& Self(void* user_data) { return *static_cast<Http2Session*>(user_data); }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* header, void* user_data) {
    Http2Session& self = Self(user_data);
    switch (header->type) {
      case NGHTTP2_DATA:
        self.data_empty_ = true;
        break;
      case NGHTTP2_HEADERS:
      case NGHTTP2_RST_STREAM:
      case NGHTTP2_GOAWAY:
        break;
      case NGHTTP2_CONTINUATION:
        if (header->length == 0) self.listener_.OnOverhead(Http2Overhead::kOther);
        break;
      case NGHTTP2_SETTINGS:
        self.listener_.OnOverhead(Http2Overhead::kSettings);
        break;
      default:
        self.listener_.OnOverhead(Http2Overhead::kOther);
        break;
    }
    return 0;
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Http2Session& self = Self(user_data);
    self.header_stream_ = nullptr;
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    const int32_t id = frame->hd.stream_id;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      Http2Stream* stream = self.listener_.OnStreamBegin(id);
      if (stream == nullptr) {
        self.Reset(id, Http2Error::kRefusedStream);
        return 0;
      }
      stream->id = id;
      nghttp2_session_set_stream_user_data(self.session_, id, stream);
      self.header_stream_ = stream;
      self.header_first_ = true;
    } else {
      self.header_stream_ = self.Find(id);
      self.header_first_ = frame->headers.cat == NGHTTP2_HCAT_RESPONSE;
    }
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
    Http2Session& self = Self(user_data);
    if (self.header_stream_ != nullptr) {
      self.listener_.OnHeader(*self.header_stream_, View(name, name_size), View(value, value_size));
    }
    return 0;
  }

  static int OnFrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Http2Session& self = Self(user_data);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS: {
        Http2Stream* stream = self.header_stream_;
        self.header_stream_ = nullptr;
        if (stream == nullptr) return 0;
        if (self.side_ == Side::kServer && !self.header_first_ && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) {
          // Only trailers may follow, and they end the stream (RFC 9113 §8.1).
          self.Reset(stream->id, Http2Error::kProtocolError);
          return 0;
        }
        self.listener_.OnHeadersEnd(*stream, self.header_first_);
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          stream->remote_ended = true;
          self.listener_.OnRemoteEnd(*stream);
        }
        return 0;
      }
      case NGHTTP2_DATA:
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          if (Http2Stream* stream = self.Find(frame->hd.stream_id)) {
            stream->remote_ended = true;
            self.listener_.OnRemoteEnd(*stream);
          }
        } else if (self.data_empty_) {
          self.listener_.OnOverhead(Http2Overhead::kOther);
        }
        return 0;
      case NGHTTP2_RST_STREAM:
        self.listener_.OnResetForced();
        return 0;
      case NGHTTP2_PING:
        self.listener_.OnPing((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0);
        return 0;
      case NGHTTP2_GOAWAY:
        self.listener_.OnGoAway(static_cast<Http2Error>(frame->goaway.error_code),
                                View(frame->goaway.opaque_data, frame->goaway.opaque_data_len));
        return 0;
      default:
        return 0;
    }
  }

  static int OnDataChunk(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user_data) {
    Http2Session& self = Self(user_data);
    self.data_empty_ = false;
    if (Http2Stream* stream = self.Find(id)) self.listener_.OnBody(*stream, View(data, size));
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, int32_t id, uint32_t error, void* user_data) {
    Http2Session& self = Self(user_data);
    if (Http2Stream* stream = self.Find(id)) {
      if (self.header_stream_ == stream) self.header_stream_ = nullptr;
      nghttp2_session_set_stream_user_data(self.session_, id, nullptr);
      self.listener_.OnStreamClosed(*stream, static_cast<Http2Error>(error));
    }
    return 0;
  }

  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Http2Session& self = Self(user_data);
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      const auto error = static_cast<Http2Error>(frame->rst_stream.error_code);
      if (error != Http2Error::kNoError && error != Http2Error::kCancel) self.listener_.OnResetForced();
      return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (Http2Stream* stream = self.Find(frame->hd.stream_id)) {
      self.listener_.OnHeadersSent(*stream, (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0);
    }
    return 0;
  }

  static ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t*, size_t length, uint32_t* flags,
                          nghttp2_data_source* source, void* user_data) {
    Http2Session& self = Self(user_data);
    auto& stream = *static_cast<Http2Stream*>(source->ptr);
    const size_t left = stream.unframed();
    if (left == 0 && !stream.body_ended) {
      stream.body_waits = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    const size_t size = std::min(left, length);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (size == left && stream.body_ended) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (self.side_ == Side::kServer) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        self.listener_.OnBodyFramed(stream);
      }
    }
    return static_cast<ssize_t>(size);
  }

  static int SendBody(nghttp2_session*, nghttp2_frame*, const uint8_t* frame_header, size_t size,
                      nghttp2_data_source* source, void* user_data) {
    Http2Session& self = Self(user_data);
    auto& stream = *static_cast<Http2Stream*>(source->ptr);
    self.drain_out_->append(View(frame_header, kFrameHeaderBytes));
    stream.TakeBody(size, *self.drain_out_);
    self.listener_.OnBodySent(stream, size);
    // Without this the library goes on to the next frame, whatever the limit of the drain.
    return self.drain_out_->size() >= self.drain_limit_ ? NGHTTP2_ERR_PAUSE : 0;
  }
};

Http2Session::Http2Session(Side side, Http2Listener& listener, uint32_t streams_max)
    : listener_(listener), side_(side) {
  nghttp2_session_callbacks* callbacks = nullptr;
  CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Callbacks::OnBeginFrame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::OnBeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::OnFrameReceived);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnDataChunk);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnStreamClose);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::OnFrameSent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::SendBody);

  nghttp2_option* option = nullptr;
  CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_http_messaging(option, 1);
  // Closed streams are kept for RFC 7540 priorities only, which nobody uses: without them memory is that of live calls.
  nghttp2_option_set_no_closed_streams(option, 1);
  // Its limiter reads the system's clock; who listens counts resets by the clock it was given.
  constexpr uint64_t kNoLimit = std::numeric_limits<uint32_t>::max();
  nghttp2_option_set_stream_reset_rate_limit(option, kNoLimit, kNoLimit);
  // Its bound is on an estimate that is larger than what is sent.
  nghttp2_option_set_max_send_header_block_length(option, 4 * kHttpHeaderBytesMax);
  // Until the server's SETTINGS come a client would stop at 100 streams.
  nghttp2_option_set_peer_max_concurrent_streams(option, std::numeric_limits<uint32_t>::max());
  CHECK((side == Side::kServer ? nghttp2_session_server_new2(&session_, callbacks, this, option)
                               : nghttp2_session_client_new2(&session_, callbacks, this, option)) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);

  std::array<nghttp2_settings_entry, 3> settings = {
      {{NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameSize}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kHttp2WindowBytes}}};
  size_t count = 2;
  if (side == Side::kClient) {
    settings[count++] = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
  } else if (streams_max != std::numeric_limits<uint32_t>::max()) {
    settings[count++] = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams_max};
  }
  Submitted(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), count));
  Submitted(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kHttp2ConnectionWindowBytes));
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

bool Http2Session::Receive(std::string_view bytes) {
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  CHECK(taken != NGHTTP2_ERR_NOMEM);
  return taken >= 0;
}

bool Http2Session::Drain(std::string& out, size_t limit) {
  drain_out_ = &out;
  drain_limit_ = limit;
  while (out.size() < limit) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    CHECK(size != NGHTTP2_ERR_NOMEM);
    if (size < 0) return false;
    if (size == 0) break;
    out.append(View(data, static_cast<size_t>(size)));
  }
  drain_out_ = nullptr;
  return true;
}

bool Http2Session::Finished() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

Http2Stream* Http2Session::Find(int32_t id) const {
  return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session_, id));
}

bool Http2Session::SubmitRequest(std::span<const Http2Header> headers, Http2Stream& stream) {
  std::array<nghttp2_nv, kHeadersMax> nvs;
  const size_t count = Convert(headers, nvs);
  if (nghttp2_session_check_request_allowed(session_) == 0) return false;
  nghttp2_data_provider provider;
  provider.source.ptr = &stream;
  provider.read_callback = Callbacks::ReadBody;
  const int32_t id = nghttp2_submit_request(session_, nullptr, nvs.data(), count, &provider, &stream);
  CHECK(id != NGHTTP2_ERR_NOMEM);
  if (id < 0) return false;
  stream.id = id;
  return true;
}

void Http2Session::SubmitResponse(Http2Stream& stream, std::span<const Http2Header> headers, bool ends) {
  std::array<nghttp2_nv, kHeadersMax> nvs;
  const size_t count = Convert(headers, nvs);
  nghttp2_data_provider provider;
  provider.source.ptr = &stream;
  provider.read_callback = Callbacks::ReadBody;
  Submitted(nghttp2_submit_response(session_, stream.id, nvs.data(), count, ends ? nullptr : &provider));
}

void Http2Session::SubmitTrailers(Http2Stream& stream, std::span<const Http2Header> headers) {
  std::array<nghttp2_nv, kHeadersMax> nvs;
  const size_t count = Convert(headers, nvs);
  Submitted(nghttp2_submit_trailer(session_, stream.id, nvs.data(), count));
}

void Http2Session::BodyGrew(Http2Stream& stream) {
  if (!stream.body_waits) return;
  stream.body_waits = false;
  Submitted(nghttp2_session_resume_data(session_, stream.id));
}

void Http2Session::Reset(int32_t id, Http2Error error) {
  Submitted(nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, static_cast<uint32_t>(error)));
}

void Http2Session::Ping() { Submitted(nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr)); }

void Http2Session::SubmitShutdownNotice() { Submitted(nghttp2_submit_shutdown_notice(session_)); }

void Http2Session::SubmitGoAway(Http2Error error, std::string_view debug) {
  Submitted(nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                                  static_cast<uint32_t>(error), reinterpret_cast<const uint8_t*>(debug.data()),
                                  debug.size()));
}

}  // namespace detcd::wire
