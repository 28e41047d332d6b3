#include "core/base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace detcd {

uint64_t DigestBytes(std::string_view bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

}  // namespace detcd
