// Where judges say what they found. The first violation counts: what follows it is often only its consequence.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checker/observation.h"

namespace detcd::checker {

class Verdict {
 public:
  // `trouble` names the kind of trouble without numbers: with the property it is the signature.
  void Report(std::string_view property, std::string_view trouble, std::string sentence, Moment moment,
              std::vector<uint64_t> operations = {}) {
    if (violation_.has_value()) return;
    violation_ = Violation{.property = std::string(property),
                           .signature = std::string(property) + ": " + std::string(trouble),
                           .sentence = std::move(sentence),
                           .moment = moment,
                           .operations = std::move(operations)};
  }

  bool broken() const { return violation_.has_value(); }
  const std::optional<Violation>& violation() const { return violation_; }

 private:
  std::optional<Violation> violation_;
};

}  // namespace detcd::checker
