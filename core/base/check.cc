#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace detcd {
namespace {

// The process-wide switches of check.h. They are not state of the core: no behaviour that a client, a peer or a disk
// can see depends on them.
struct CheckState {
  CheckHook hook = nullptr;
  void* context = nullptr;
  bool verify = false;
};
CheckState check_state;

}  // namespace

void SetCheckHook(CheckHook hook, void* context) {
  check_state.hook = hook;
  check_state.context = context;
}

void SetVerify(bool on) { check_state.verify = on; }
bool VerifyEnabled() { return check_state.verify; }

void CheckFailed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "CHECK failed at %s:%d: %s %.*s\n", file, line, condition, static_cast<int>(detail.size()),
               detail.data());
  if (check_state.hook != nullptr) check_state.hook(check_state.context, condition);
  std::abort();
}

}  // namespace detcd
