#include "realnet/real_offload.h"

#include <memory>
#include <utility>

namespace detcd::realnet {
namespace {

class OffloadJob final : public Job {
 public:
  OffloadJob(Loop& loop, OffloadFunction function, Bytes input, OffloadListener& listener, uint64_t token)
      : loop_(loop), function_(function), input_(std::move(input)), listener_(listener), token_(token) {}

  void Run() override { result_ = function_(input_.view()); }
  void Complete() override {
    loop_.BeginEvent();
    listener_.OnOffloaded(token_, std::move(result_));
  }

 private:
  Loop& loop_;
  const OffloadFunction function_;
  const Bytes input_;  // its count is touched by the loop's thread only
  OffloadListener& listener_;
  const uint64_t token_;
  Bytes result_;
};

}  // namespace

void RealOffloader::Run(OffloadFunction function, Bytes input, OffloadListener& listener, uint64_t token) {
  worker_.Submit(std::make_unique<OffloadJob>(loop_, function, std::move(input), listener, token));
}

}  // namespace detcd::realnet
