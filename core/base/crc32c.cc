#include "core/base/crc32c.h"

#include <algorithm>
#include <isa-l/crc.h>

namespace detcd {

uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes) {
  constexpr size_t kPieceMax = size_t{1} << 30;  // the library counts with an int
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, std::min(bytes.size(), kPieceMax));
    // The library reads only, though its prototype has no const.
    auto* start = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));
    state = crc32_iscsi(start, static_cast<int>(piece.size()), state);
    bytes.remove_prefix(piece.size());
  }
  return ~state;
}

}  // namespace detcd
