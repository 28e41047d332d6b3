#include "realnet/real_streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include "realnet/lingering_close.h"
#include "realnet/real_acceptor.h"
#include "realnet/real_stream.h"
#include "realnet/socket_address.h"

namespace detcd::realnet {
namespace {

// One name to look up. Owns all it touches while it runs, since it may outlive the incarnation (Worker::Abandon).
class ResolveJob final : public Job {
 public:
  ResolveJob(Loop& loop, std::string host, uint16_t port, ResolveListener& listener, uint64_t token)
      : loop_(loop), listener_(listener), token_(token), host_(std::move(host)), port_(port) {}

  void Run() override {
    if (host_.find('\0') != std::string::npos) return;
    addrinfo hints = {};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host_.c_str(), nullptr, &hints, &list) != 0) return;
    for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
      if (item->ai_addrlen > sizeof(sockaddr_storage)) continue;
      SocketAddress socket_address;
      std::copy_n(reinterpret_cast<const char*>(item->ai_addr), item->ai_addrlen,
                  reinterpret_cast<char*>(&socket_address.storage));
      socket_address.size = item->ai_addrlen;
      Address address = FromSocketAddress(socket_address);
      address.port = port_;
      if (std::find(addresses_.begin(), addresses_.end(), address) == addresses_.end()) addresses_.push_back(address);
    }
    ::freeaddrinfo(list);
  }

  void Complete() override {
    loop_.BeginEvent();
    const IoError error = addresses_.empty() ? IoError::kNotFound : IoError::kOk;
    listener_.OnResolved(token_, error, std::move(addresses_));
  }

 private:
  Loop& loop_;                 // for Complete only, as the next two
  ResolveListener& listener_;
  const uint64_t token_;
  const std::string host_;
  const uint16_t port_;
  std::vector<Address> addresses_;
};

}  // namespace

RealNetwork::RealNetwork(Loop& loop, Trace& trace)
    : loop_(loop), trace_(trace), resolver_("resolver", loop.completions()) {}

RealNetwork::~RealNetwork() { End(); }

ListenResult RealNetwork::Listen(const Address& address, AcceptListener& listener) {
  return RealAcceptor::Open(*this, address, listener);
}

std::unique_ptr<Stream> RealNetwork::Connect(const Address& address, StreamListener& listener) {
  return std::make_unique<RealStream>(*this, address, listener);
}

void RealNetwork::Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) {
  // Numeric names go the same way: getaddrinfo gives them back without asking anybody.
  resolver_.Submit(std::make_unique<ResolveJob>(loop_, host, port, listener, token));
}

void RealNetwork::Linger(int descriptor) {
  if (lingering_.size() >= kLingeringMax) lingering_.erase(lingering_.begin());
  lingering_.push_back(std::make_unique<LingeringClose>(*this, descriptor));
}

void RealNetwork::EndLinger(LingeringClose& errand) {
  std::erase_if(lingering_, [&](const std::unique_ptr<LingeringClose>& one) { return one.get() == &errand; });
}

}  // namespace detcd::realnet
