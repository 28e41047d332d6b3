// CHECK states something we can prove; it stays on in production, because stopping is better than spreading a wrong
// state. VERIFY is the same for scans too slow for production; tests and a share of simulated seeds turn it on.
// Neither is for bytes from peers, disks or clients: those return a Status.
#pragma once

#include <string_view>

namespace detcd {

// Called with the failed condition before the process aborts; the simulator prints its seed and trace tail there.
// The context is handed back as it was given. One hook a process; null means none.
using CheckHook = void (*)(void* context, std::string_view message);
void SetCheckHook(CheckHook hook, void* context);

// Whether VERIFY conditions are evaluated. Set once per world or process, before any core code runs.
void SetVerify(bool on);
bool VerifyEnabled();

// Prints `condition` with its place, calls the hook and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, std::string_view detail);

}  // namespace detcd

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::detcd::CheckFailed(__FILE__, __LINE__, #condition, {});                                \
  } while (false)

// As CHECK, with a text (anything convertible to std::string_view) that tells the values; evaluated on failure only.
#define CHECK_MSG(condition, detail)                                                           \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::detcd::CheckFailed(__FILE__, __LINE__, #condition, (detail));                          \
  } while (false)

#define VERIFY(condition)                                                                      \
  do {                                                                                         \
    if (::detcd::VerifyEnabled() && !(condition)) [[unlikely]]                                 \
      ::detcd::CheckFailed(__FILE__, __LINE__, #condition, {});                                \
  } while (false)
