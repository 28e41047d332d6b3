#include "core/rpc/utf8.h"

#include <cstddef>
#include <cstdint>

namespace detcd::rpc {

bool IsUtf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<uint8_t>(bytes[i++]);
    if (lead < 0x80) continue;
    size_t more = 0;
    uint32_t rune = 0, rune_min = 0;
    if (lead >> 5 == 0b110) {
      more = 1, rune = lead & 0x1F, rune_min = 0x80;
    } else if (lead >> 4 == 0b1110) {
      more = 2, rune = lead & 0x0F, rune_min = 0x800;
    } else if (lead >> 3 == 0b11110) {
      more = 3, rune = lead & 0x07, rune_min = 0x10000;
    } else {
      return false;
    }
    for (; more > 0; --more) {
      if (i == bytes.size()) return false;
      const auto next = static_cast<uint8_t>(bytes[i++]);
      if (next >> 6 != 0b10) return false;
      rune = rune << 6 | (next & 0x3F);
    }
    if (rune < rune_min || rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF)) return false;
  }
  return true;
}

}  // namespace detcd::rpc
