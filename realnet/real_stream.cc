#include "realnet/real_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/check.h"
#include "realnet/os_error.h"
#include "realnet/real_streams.h"
#include "realnet/socket_options.h"

namespace detcd::realnet {
namespace {

constexpr int kReadsPerEvent = 4;     // of the buffer's size, then others have their turn
constexpr size_t kPiecesPerWrite = 256;  // of one sendmsg (the kernel's limit is 1024)

constexpr uint32_t kReadEdges = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr uint32_t kEndEdges = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

int PendingError(int descriptor) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace

RealStream::RealStream(RealNetwork& network, const Address& address, StreamListener& listener)
    : network_(network), loop_(network.loop()), listener_(&listener), id_(loop_.Watch(*this)) {
  StartConnect(address);
}

RealStream::RealStream(RealNetwork& network, int descriptor, const SocketAddress& remote)
    : network_(network),
      loop_(network.loop()),
      descriptor_(descriptor),
      id_(loop_.Watch(*this)),
      remote_(remote),
      phase_(Phase::kOpen) {
  if (!loop_.Attach(id_, descriptor_)) FailLater(IoError::kTooManyOpen);
}

RealStream::~RealStream() {
  if (descriptor_ < 0) {
    loop_.Forget(id_);
  } else if (phase_ == Phase::kOpen && write_closed_ && !read_ended_ && failure_ == IoError::kOk && !loop_.stopped()) {
    loop_.Forget(id_);
    network_.Linger(descriptor_);
  } else {
    CloseDescriptor(!write_closed_);
  }
}

void RealStream::StartConnect(const Address& address) {
  if (address.is_unix) remote_path_ = address;
  const std::optional<SocketAddress> remote = ToSocketAddress(address);
  if (!remote) return FailLater(IoError::kInvalid);
  remote_ = *remote;
  descriptor_ = ::socket(remote_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) return FailLater(SocketError(errno));
  SetStreamOptions(descriptor_, remote_.family());
  if (::connect(descriptor_, remote_.get(), remote_.size) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    // A Unix socket: no such path, or its accept queue is full. Out of local ports: wait, as for descriptors.
    if (error == ENOENT || error == EAGAIN) return FailLater(IoError::kRefused);
    if (error == EADDRNOTAVAIL) return FailLater(IoError::kTooManyOpen);
    return FailLater(SocketError(error));
  }
  // Also when it is up at once: the first edge, EPOLLOUT, is the event that tells it.
  if (!loop_.Attach(id_, descriptor_)) FailLater(IoError::kTooManyOpen);
}

void RealStream::FailLater(IoError error) {
  if (failure_ != IoError::kOk || phase_ == Phase::kClosed) return;
  failure_ = error;
  loop_.Schedule(id_);
}

void RealStream::OnReady(uint32_t edges) {
  if ((edges & kReadEdges) != 0) readable_ = true;
  if ((edges & kEndEdges) != 0) hung_up_ = true;
  if (phase_ == Phase::kConnecting && failure_ == IoError::kOk) {
    if ((edges & (EPOLLOUT | kEndEdges)) == 0) return;
    if (!FinishConnect()) return;
  } else if ((edges & EPOLLOUT) != 0 && (edges & EPOLLERR) == 0 && write_short_) {
    // Before the reading: a write inside OnData may use up the room, and the edge then says nothing any more.
    if (!TellWritable()) return;
  }
  if (phase_ == Phase::kOpen && readable_ && !paused_ && !read_ended_ && !ReadSome()) return;
  if ((edges & EPOLLERR) != 0 && failure_ == IoError::kOk && (paused_ || read_ended_ || !readable_)) {
    // Nobody reads, so that no read meets the error.
    const int error = PendingError(descriptor_);
    if (error != 0) failure_ = SocketError(error);
  }
  if (failure_ != IoError::kOk) {
    // Bytes that came before the end are told first; ReadSome has scheduled the next part.
    if (phase_ == Phase::kOpen && readable_ && !paused_ && !read_ended_) return;
    TellClosed();
  }
}

bool RealStream::FinishConnect() {
  const int error = PendingError(descriptor_);
  if (error != 0 || IsConnectedToItself()) {
    failure_ = error != 0 ? SocketError(error) : IoError::kRefused;
    TellClosed();
    return false;
  }
  phase_ = Phase::kOpen;
  if (write_closed_) ShutdownWrite();
  const WatchId id = id_;
  Loop& loop = loop_;
  loop.BeginEvent();
  listener_->OnConnected();
  return loop.Runs(id);
}

// Connecting to a free port of our own host may pick that very port for our end, and TCP's simultaneous open (RFC 9293,
// section 3.5) then succeeds.
bool RealStream::IsConnectedToItself() const {
  if (remote_.family() == AF_UNIX) return false;
  SocketAddress local;
  local.size = sizeof(local.storage);
  SocketAddress peer = local;
  return ::getsockname(descriptor_, local.get(), &local.size) == 0 &&
         ::getpeername(descriptor_, peer.get(), &peer.size) == 0 &&
         FromSocketAddress(local) == FromSocketAddress(peer);
}

bool RealStream::ReadSome() {
  const WatchId id = id_;
  Loop& loop = loop_;
  for (int i = 0; i < kReadsPerEvent; ++i) {
    const ssize_t size = ::recv(descriptor_, loop.read_buffer(), kReadBufferBytes, 0);
    if (size > 0) {
      // A Unix socket may cut a read between two senders, TCP's short read means that no more was there.
      const bool drained = static_cast<size_t>(size) < kReadBufferBytes && !hung_up_ && remote_.family() != AF_UNIX;
      if (drained) readable_ = false;
      loop.BeginEvent();
      listener_->OnData({loop.read_buffer(), static_cast<size_t>(size)});
      if (!loop.Runs(id)) return false;
      if (drained || paused_) return true;
    } else if (size == 0) {
      readable_ = false;
      read_ended_ = true;
      loop.BeginEvent();
      listener_->OnReadEnd();
      return loop.Runs(id);
    } else if (errno == EAGAIN) {
      readable_ = false;
      return true;
    } else if (errno != EINTR) {
      readable_ = false;
      if (failure_ == IoError::kOk) failure_ = SocketError(errno);
      return true;
    }
  }
  loop.Schedule(id);
  return true;
}

bool RealStream::TellWritable() {
  const WatchId id = id_;
  Loop& loop = loop_;
  write_short_ = false;
  loop.BeginEvent();
  listener_->OnWritable();
  return loop.Runs(id);
}

void RealStream::TellClosed() {
  phase_ = Phase::kClosed;
  if (descriptor_ >= 0) {
    CloseDescriptor(false);
  } else {
    loop_.Forget(id_);
  }
  loop_.BeginEvent();
  listener_->OnClosed(failure_);
}

size_t RealStream::Write(std::span<const Bytes> pieces) {
  // While OnWritable is due there is no point in asking the kernel.
  if (phase_ != Phase::kOpen || write_closed_ || write_short_ || failure_ != IoError::kOk) return 0;
  size_t written = 0;
  while (!pieces.empty()) {
    iovec vectors[kPiecesPerWrite];
    const size_t count = std::min(pieces.size(), kPiecesPerWrite);
    size_t wanted = 0;
    for (size_t i = 0; i < count; ++i) {
      vectors[i] = {.iov_base = const_cast<char*>(pieces[i].data()), .iov_len = pieces[i].size()};
      wanted += pieces[i].size();
    }
    pieces = pieces.subspan(count);
    if (wanted == 0) continue;
    msghdr message = {};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    ssize_t sent = 0;
    do {
      sent = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN) {
      readable_ = true;  // what the peer said before it went may still be read
      hung_up_ = true;
      FailLater(SocketError(errno));
      return written;
    }
    if (sent > 0) written += static_cast<size_t>(sent);
    if (sent < 0 || static_cast<size_t>(sent) < wanted) {
      write_short_ = true;
      return written;
    }
  }
  return written;
}

void RealStream::CloseWrite() {
  if (write_closed_) return;
  write_closed_ = true;
  write_short_ = false;
  if (phase_ == Phase::kOpen) ShutdownWrite();
}

void RealStream::ShutdownWrite() {
  // ENOTCONN: the connection is dead already, which its own event tells.
  ::shutdown(descriptor_, SHUT_WR);
}

void RealStream::ResumeReading() {
  if (!paused_) return;
  paused_ = false;
  if (readable_ && phase_ == Phase::kOpen) loop_.Schedule(id_);
}

Address RealStream::Remote() const {
  if (remote_path_.is_unix) return remote_path_;
  return FromSocketAddress(remote_);
}

void RealStream::OnLoopEnd() {
  phase_ = Phase::kClosed;
  if (descriptor_ >= 0) {
    CloseDescriptor(!write_closed_);
  } else {
    loop_.Forget(id_);
  }
}

void RealStream::CloseDescriptor(bool reset) {
  loop_.Forget(id_);
  if (reset) {
    // Closing then sends a reset in place of an end (RFC 9293, section 3.10.5, ABORT).
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace detcd::realnet
