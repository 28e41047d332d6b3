// The table of differences that are meant: accepted.txt, in blocks of lines `word: text` with an empty line between.
//
//   name:    malformed-text               one word, for the counts
//   request: ^/etcdserverpb               pattern found in the call's text (testing::Describe); all when absent
//   etcd:    ^13 grpc: error unmarsh      pattern found in the status of etcd's answer, `CODE text`; all when absent
//   detcd:   ^13 grpc: error unmarsh      the same for detcd's
//   joined:  equal                        only if a part is above detcd's bound and the parts, put together, are equal
//   why:     ...                          the reason
//
// Patterns are ECMAScript's. Lines that begin with # are comments.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tests/interop/differential/answer.h"

namespace detcd::differential {

class AcceptedDifferences {
 public:
  struct Entry {
    std::string name;
    std::optional<std::regex> request, etcd, detcd;
    bool joined = false;
    std::string why;
    uint64_t matched = 0;
  };

  // Reads `path`; what is wrong with it when that fails, else empty.
  std::string Load(const std::string& path);

  // Whether an entry covers this difference; counts it there.
  bool Accept(const testing::ApiCall& call, const Answer& etcd, const Answer& detcd);

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace detcd::differential
