// CRC-32C (Castagnoli, reflected; start and final XOR of all ones), as etcd's log and hashes use it.
#pragma once

#include <cstdint>
#include <string_view>

namespace detcd {

// The checksum of what `crc` covered, followed by `bytes`. Start with 0.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes);

}  // namespace detcd
