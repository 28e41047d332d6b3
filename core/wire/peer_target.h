// Where a peer is: its URLs and the addresses of their names, tried in turn. The first until an error, then the next.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/io/streams.h"
#include "core/wire/url.h"

namespace detcd::wire {

class PeerTarget {
 public:
  // `urls` is not empty.
  explicit PeerTarget(std::vector<Url> urls) : urls_(std::move(urls)) { CHECK(!urls_.empty()); }

  const Url& url() const { return urls_[url_]; }
  // What goes into the Host header.
  std::string HostHeader() const { return url().IsUnix() ? "localhost" : HostAndPort(url()); }
  // The one of the addresses of url() that is to be tried; `addresses` is not empty.
  const Address& Pick(const std::vector<Address>& addresses) {
    address_count_ = addresses.size();
    return addresses[address_ % address_count_];
  }
  // An attempt failed: on to the next address, then the next URL.
  void OnFailed() {
    if (++address_ < address_count_) return;
    address_ = 0;
    address_count_ = 1;
    url_ = (url_ + 1) % urls_.size();
  }

 private:
  std::vector<Url> urls_;
  size_t url_ = 0;
  size_t address_ = 0;        // of the addresses of that URL's name
  size_t address_count_ = 1;  // as of the last Pick
};

}  // namespace detcd::wire
