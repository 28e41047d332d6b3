// Off-loading: a pure function of its input, run elsewhere, its result an event.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/bytes.h"

namespace detcd {

// Runs on another thread in production: touches nothing but its argument.
using OffloadFunction = Bytes (*)(std::string_view input);

class OffloadListener {
 public:
  virtual void OnOffloaded(uint64_t token, Bytes result) = 0;

 protected:
  ~OffloadListener() = default;
};

class Offloader {
 public:
  virtual ~Offloader() = default;
  // `listener` lives as long as the incarnation. Results may arrive in any order.
  virtual void Run(OffloadFunction function, Bytes input, OffloadListener& listener, uint64_t token) = 0;
};

}  // namespace detcd
