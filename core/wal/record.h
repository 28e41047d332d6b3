// Records of the log and their frames (format.md, reference/disk.md 3 and 4): pure functions over bytes.
//
// A frame is an 8-byte length field, a walpb.Record of n bytes and p zero bytes, p = (8 - n mod 8) mod 8. Frames start on
// multiples of 8, so a length field never lies across two sectors: after a crash it is whole or zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/raft/message.h"

namespace detcd::wal {

enum class RecordType : uint8_t { kMetadata = 1, kEntry = 2, kState = 3, kCrc = 4, kSnapshot = 5 };

// `entry`, `state`, ...; `unknown` for numbers that are none of them.
std::string_view RecordTypeName(uint64_t type);

inline constexpr size_t kFrameHeadBytes = 8;

// What a length field says. Any 64 bits are read the way etcd reads them; `canonical` tells whether it is one that a
// writer of frames makes for `record_bytes`.
struct FrameLength {
  uint64_t record_bytes = 0;
  uint64_t pad_bytes = 0;
  bool canonical = false;

  uint64_t frame_bytes() const { return kFrameHeadBytes + record_bytes + pad_bytes; }
};
FrameLength DecodeFrameLength(uint64_t field);
uint64_t EncodeFrameLength(uint64_t record_bytes);

// A record as it was read. `type` may be any number: unknown ones are the caller's to refuse.
struct Record {
  uint64_t type = 0;
  uint32_t crc = 0;        // the running value after `data`
  std::string_view data;   // a view into the bytes decoded
};

// Reads a walpb.Record that fills `encoded`. nullopt: malformed.
std::optional<Record> DecodeRecord(std::string_view encoded);

// A record that tells its own size: the fields as every writer of this format puts them (type, crc, then data) at the
// start of `bytes`, whatever follows. Finds the record behind a damaged length field. `size` gets the bytes it takes.
std::optional<Record> DecodeRecordPrefix(std::string_view bytes, size_t& size);

// Gathers frames for one write and carries the running CRC. Large entry data is shared, all else goes to buffers.
class FrameWriter {
 public:
  explicit FrameWriter(uint32_t crc) : crc_(crc) {}

  void AddMetadata(std::string_view data) { AddRecord(RecordType::kMetadata, data); }
  void AddEntry(const raft::Entry& entry);
  void AddState(const raft::HardState& state);
  void AddEmptySnapshot();  // index 0, term 0
  void AddCrc();            // the head of a segment: the running value, not counted into itself

  uint32_t crc() const { return crc_; }      // the running value after all that was added
  uint64_t size() const { return size_; }    // bytes of all frames so far, a multiple of 8
  std::vector<Bytes> TakePieces();

 private:
  void AddRecord(RecordType type, std::string_view data);
  void FrameHead(RecordType type, uint64_t record_bytes);
  void Pad(uint64_t record_bytes);

  std::vector<Bytes> pieces_;  // what was closed by shared data
  std::string buffer_;         // the frames since
  uint64_t size_ = 0;
  uint32_t crc_;
};

}  // namespace detcd::wal
