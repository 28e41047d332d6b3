// Any bytes as a log of two segments: opened or refused, never a crash; and what was opened opens again, the same.
#include <cstdlib>
#include <span>

#include "tests/core/wal/wal_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace detcd;
  using namespace detcd::wal;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  size_t first = size == 0 ? 0 : static_cast<size_t>(data[0]) * 8;
  testing::MemoryDisk disk;
  disk.Put("member/wal/0000000000000000-0000000000000000.wal", std::string(bytes.substr(std::min<size_t>(size, 1), first)));
  if (size > 1 + first) {
    disk.Put("member/wal/0000000000000001-0000000000000001.wal", std::string(bytes.substr(1 + first)));
  }
  LogModel log;
  {
    WalRun run(disk);
    run.Open();
    if (run.opened == !run.failed.empty()) std::abort();
    if (!run.opened) return 0;
    log = run.log;
  }
  WalRun again(disk);
  again.Open();
  if (!again.opened || !(again.log == log)) std::abort();
  return 0;
}
