#include "realnet/real_acceptor.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "realnet/os_error.h"
#include "realnet/real_stream.h"
#include "realnet/real_streams.h"
#include "realnet/socket_options.h"

namespace detcd::realnet {
namespace {

constexpr int kAcceptsPerEvent = 64;
constexpr int kAcceptQueueMax = 4'096;  // asked for; the kernel's somaxconn cuts it

// Whether the socket file at `address` is a leftover: a file of that kind to which nobody answers.
bool IsDeserted(const SocketAddress& address, const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool refused = ::connect(probe, address.get(), address.size) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

bool Bind(int descriptor, const SocketAddress& address, const Address& name) {
  if (::bind(descriptor, address.get(), address.size) == 0) return true;
  if (errno != EADDRINUSE || !name.is_unix) return false;
  if (!IsDeserted(address, name.host) || ::unlink(name.host.c_str()) != 0) {
    errno = EADDRINUSE;
    return false;
  }
  return ::bind(descriptor, address.get(), address.size) == 0;
}

bool BindAndListen(int descriptor, const SocketAddress& address, const Address& name) {
  SetStreamOptions(descriptor, address.family());
  if (address.family() != AF_UNIX) {
    // A port in TIME_WAIT may be taken at once; one that somebody listens on may not.
    const int on = 1;
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (address.family() == AF_INET6) {
    // [::] takes IPv4 too, as Go's listeners do.
    const int off = 0;
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  return Bind(descriptor, address, name) && ::listen(descriptor, kAcceptQueueMax) == 0;
}

bool IsExhaustion(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS || error_number == ENOMEM;
}

}  // namespace

ListenResult RealAcceptor::Open(RealNetwork& network, const Address& address, AcceptListener& listener) {
  const std::optional<SocketAddress> wanted = ToSocketAddress(address);
  if (!wanted) return {.error = IoError::kInvalid};
  const int descriptor = ::socket(wanted->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return {.error = SocketError(errno)};
  if (!BindAndListen(descriptor, *wanted, address)) {
    const int error = errno;
    ::close(descriptor);
    // An address that is not one of this host's, or a path through a folder that is not there.
    if (error == EADDRNOTAVAIL || error == ENOENT) return {.error = IoError::kInvalid};
    return {.error = SocketError(error)};
  }
  Address local = address;
  if (!address.is_unix) {
    SocketAddress bound;
    bound.size = sizeof(bound.storage);
    CHECK(::getsockname(descriptor, bound.get(), &bound.size) == 0);
    local.port = FromSocketAddress(bound).port;
  }
  std::unique_ptr<RealAcceptor> acceptor(new RealAcceptor(network, descriptor, local, listener));
  if (!network.loop().Attach(acceptor->id_, descriptor)) return {.error = IoError::kTooManyOpen};
  return {.acceptor = std::move(acceptor)};
}

RealAcceptor::RealAcceptor(RealNetwork& network, int descriptor, const Address& local, AcceptListener& listener)
    : network_(network),
      loop_(network.loop()),
      listener_(listener),
      descriptor_(descriptor),
      id_(loop_.Watch(*this)),
      local_(local) {}

RealAcceptor::~RealAcceptor() { OnLoopEnd(); }

void RealAcceptor::OnLoopEnd() {
  if (descriptor_ < 0) return;
  loop_.timers().Disarm(*this);
  loop_.Forget(id_);
  ::close(descriptor_);
  descriptor_ = -1;
  if (local_.is_unix) ::unlink(local_.host.c_str());
}

void RealAcceptor::OnReady(uint32_t edges) {
  if (edges != 0) readable_ = true;
  Loop& loop = loop_;
  const WatchId id = id_;
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    if (paused_ || backing_off_ || !readable_) return;
    SocketAddress remote;
    remote.size = sizeof(remote.storage);
    const int descriptor = ::accept4(descriptor_, remote.get(), &remote.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      if (errno == EAGAIN) {
        readable_ = false;
      } else if (IsExhaustion(errno)) {
        BackOff(errno);
      }
      // Anything else is the fate of one connection that died in the queue (accept(2)).
      continue;
    }
    if (told_) {
      told_ = false;
      Emit(network_.trace(), LogLevel::kInfo, "realnet/real_acceptor", "accepting connections again",
           {TraceField::Text("address", local_.host), TraceField::Number("port", local_.port)});
    }
    auto stream = std::make_unique<RealStream>(network_, descriptor, remote);
    RealStream* const accepted = stream.get();
    const WatchId accepted_id = stream->id();
    loop.BeginEvent();
    listener_.OnAccept(std::move(stream));
    if (loop.Runs(accepted_id)) CHECK_MSG(accepted->has_listener(), "OnAccept neither took nor dropped the stream");
    if (!loop.Runs(id)) return;
  }
  loop.Schedule(id);
}

void RealAcceptor::BackOff(int error_number) {
  backing_off_ = true;
  loop_.timers().Arm(*this, Loop::Now() + kAcceptBackOff);
  if (std::exchange(told_, true)) return;
  Emit(network_.trace(), LogLevel::kWarn, "realnet/real_acceptor", "no descriptors left, connections wait",
       {TraceField::Text("address", local_.host), TraceField::Number("port", local_.port),
        TraceField::Text("error", ::strerror(error_number))});
}

void RealAcceptor::Fire() {
  backing_off_ = false;
  loop_.Schedule(id_);
}

void RealAcceptor::ResumeAccepting() {
  if (!std::exchange(paused_, false)) return;
  if (readable_) loop_.Schedule(id_);
}

}  // namespace detcd::realnet
