// Sequences of file calls: each call names what it does, and what comes next when it is done. The first error ends the
// log: it is reported once, with the name of the operation, and nothing is heard afterwards.
//
//   file->WriteAt(0, pieces, steps.Then("write of x.wal", [this](FileResult&) { ... }));
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/io/files.h"

namespace detcd::wal {

class FileSteps final : public FileListener {
 public:
  using Next = std::function<void(FileResult& result)>;

  // `fail` hears the reason, once.
  explicit FileSteps(std::function<void(std::string)> fail) : fail_(std::move(fail)) {}

  // The token of a call that must succeed.
  FileToken Then(std::string what, Next next) { return Add({std::move(what), std::move(next), false}); }
  // The token of a call whose errors are for `next`.
  FileToken Try(Next next) { return Add({{}, std::move(next), true}); }
  // Ends everything with `reason`.
  void Fail(std::string reason) {
    if (std::exchange(failed_, true)) return;
    pending_.clear();
    fail_(std::move(reason));
  }
  bool failed() const { return failed_; }

  void OnFileDone(FileToken token, FileResult result) override {
    if (failed_) return;
    auto node = pending_.extract(token);
    if (node.empty()) return;
    Step& step = node.mapped();
    if (result.error != IoError::kOk && !step.hears_errors) {
      return Fail(step.what + ": " + std::string(IoErrorName(result.error)));
    }
    step.next(result);
  }

 private:
  struct Step {
    std::string what;
    Next next;
    bool hears_errors;
  };
  FileToken Add(Step step) {
    pending_.emplace(++last_token_, std::move(step));
    return last_token_;
  }

  std::function<void(std::string)> fail_;
  std::map<FileToken, Step> pending_;  // calls made and not ended
  FileToken last_token_ = 0;
  bool failed_ = false;
};

}  // namespace detcd::wal
