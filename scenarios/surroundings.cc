#include "scenarios/surroundings.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include <malloc.h>
#include <sys/personality.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "core/base/digest.h"

namespace detcd::scenario {
namespace {

constexpr int kPerturbByte = 0xA5;  // glibc: fresh memory holds its complement, freed memory the byte
constexpr unsigned long kAskPersonality = 0xFFFF'FFFF;
constexpr size_t kPaddingBytes = 40'000;  // moves the stack's contents by more than a page

constexpr size_t kHeapBlocks = 4'096;
constexpr uint64_t kHeapBlockBytesMax = 768;  // nodes, small strings and vectors: what containers hold pointers to

std::string NameOf(const std::string& entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

std::vector<std::string> OtherEnvironment() {
  std::vector<std::string> other = {
      "HOME=/nonexistent/other", "USER=other",         "LOGNAME=other",
      "LANG=tr_TR.UTF-8",        "LC_ALL=tr_TR.UTF-8", "TZ=Asia/Kathmandu",
      "TMPDIR=/var/tmp",         "TERM=dumb",          "COLUMNS=7",
      "MALLOC_ARENA_MAX=1",      "MALLOC_MMAP_THRESHOLD_=16384",
      absl::StrFormat("MALLOC_PERTURB_=%d", kPerturbByte),
      "DETCD_PADDING=" + std::string(kPaddingBytes, 'x')};
  const size_t changed = other.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = NameOf(*entry);
    const auto same_name = [&](const std::string& mine) { return NameOf(mine) == name; };
    const auto changed_end = other.begin() + static_cast<std::ptrdiff_t>(changed);
    if (std::none_of(other.begin(), changed_end, same_name)) other.push_back(*entry);
  }
  return other;
}

void AllowOtherLayout() {
  const int now = personality(kAskPersonality);
  if (now >= 0 && (now & ADDR_NO_RANDOMIZE) != 0) personality(static_cast<unsigned long>(now & ~ADDR_NO_RANDOMIZE));
}

std::string LayoutTrouble() {
  std::ifstream file("/proc/sys/kernel/randomize_va_space");
  int level = 0;
  if (!(file >> level)) return "whether the kernel randomises addresses cannot be read";
  if (level == 0) return "the kernel does not randomise addresses (kernel.randomize_va_space is 0)";
  const int now = personality(kAskPersonality);
  if (now < 0) return "the personality of this process cannot be read";
  if ((now & ADDR_NO_RANDOMIZE) == 0) return "";
  // It may be turned on for a child, unless a filter forbids it; tried here and put back.
  if (personality(static_cast<unsigned long>(now & ~ADDR_NO_RANDOMIZE)) < 0) {
    return "a filter forbids to randomise addresses";
  }
  personality(static_cast<unsigned long>(now));
  return "";
}

void DisturbHeap(uint64_t seed) {
  mallopt(M_PERTURB, kPerturbByte);
  static std::vector<std::unique_ptr<char[]>> kept;
  kept.clear();
  std::vector<std::unique_ptr<char[]>> holes;
  uint64_t draw = MixWord(seed ^ 0x68656170);
  const auto next = [&draw] { return draw = MixWord(draw + 0x9E3779B97F4A7C15u); };
  // Every other block stays, so that its neighbours cannot grow together again once they are free.
  for (size_t i = 0; i < kHeapBlocks; ++i) {
    holes.emplace_back(new char[1 + next() % kHeapBlockBytesMax]);
    kept.emplace_back(new char[1 + next() % 16]);
  }
  // The allocator hands out free blocks in the order in which they became free, or in its reverse.
  for (size_t i = holes.size(); i > 1; --i) std::swap(holes[i - 1], holes[next() % i]);
}

}  // namespace detcd::scenario
