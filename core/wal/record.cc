#include "core/wal/record.h"

#include "core/base/codec.h"
#include "core/base/crc32c.h"

namespace detcd::wal {
namespace {

constexpr uint32_t kTypeField = 1;
constexpr uint32_t kCrcField = 2;
constexpr uint32_t kDataField = 3;
constexpr uint32_t kEntryDataField = 4;  // raftpb.Entry.Data, the last of its fields
constexpr int kTopByteShift = 56;
constexpr uint64_t kRecordBytesMask = (uint64_t{1} << kTopByteShift) - 1;

// Entry data from here on is written from where it lies; below, copying costs less than one more piece.
constexpr size_t kSharedDataBytesMin = 4096;

uint64_t PadBytes(uint64_t record_bytes) { return (8 - record_bytes % 8) % 8; }

uint64_t RecordHeadBytes(RecordType type, uint32_t crc) {
  return VarintFieldSize(kTypeField, static_cast<uint64_t>(type)) + VarintFieldSize(kCrcField, crc);
}

}  // namespace

std::string_view RecordTypeName(uint64_t type) {
  switch (type) {
    case static_cast<uint64_t>(RecordType::kMetadata):
      return "metadata";
    case static_cast<uint64_t>(RecordType::kEntry):
      return "entry";
    case static_cast<uint64_t>(RecordType::kState):
      return "state";
    case static_cast<uint64_t>(RecordType::kCrc):
      return "crc";
    case static_cast<uint64_t>(RecordType::kSnapshot):
      return "snapshot";
    default:
      return "unknown";
  }
}

FrameLength DecodeFrameLength(uint64_t field) {
  FrameLength length;
  length.record_bytes = field & kRecordBytesMask;
  // Bit 63 says that the pad count is there; etcd looks at nothing else of the top byte.
  if (field >> 63 != 0) length.pad_bytes = field >> kTopByteShift & 7;
  length.canonical = length.record_bytes != 0 && field == EncodeFrameLength(length.record_bytes);
  return length;
}

uint64_t EncodeFrameLength(uint64_t record_bytes) {
  uint64_t pad = PadBytes(record_bytes);
  if (pad == 0) return record_bytes;
  return record_bytes | (0x80 | pad) << kTopByteShift;
}

std::optional<Record> DecodeRecord(std::string_view encoded) {
  Record record;
  ProtoFields fields(encoded);
  for (ProtoField field; fields.Next(field);) {
    switch (field.number) {
      case kTypeField:
        if (field.wire_type != 0) return std::nullopt;
        record.type = field.varint;
        break;
      case kCrcField:
        if (field.wire_type != 0 || field.varint > UINT32_MAX) return std::nullopt;
        record.crc = static_cast<uint32_t>(field.varint);
        break;
      case kDataField:
        if (field.wire_type != 2) return std::nullopt;
        record.data = field.bytes;
        break;
      default:  // A later etcd's field: the CRC covers `data` alone, so the rest may be skipped.
        break;
    }
  }
  if (!fields.ok()) return std::nullopt;
  return record;
}

std::optional<Record> DecodeRecordPrefix(std::string_view bytes, size_t& size) {
  ByteReader reader(bytes);
  Record record;
  if (reader.Varint() != (kTypeField << 3)) return std::nullopt;
  record.type = reader.Varint();
  if (reader.Varint() != (kCrcField << 3)) return std::nullopt;
  uint64_t crc = reader.Varint();
  if (!reader.ok() || crc > UINT32_MAX) return std::nullopt;
  record.crc = static_cast<uint32_t>(crc);
  // Only a crc record has no data.
  if (record.type != static_cast<uint64_t>(RecordType::kCrc)) {
    if (reader.Varint() != (kDataField << 3 | 2)) return std::nullopt;
    record.data = reader.Raw(reader.Varint());
  }
  if (!reader.ok()) return std::nullopt;
  size = reader.position();
  return record;
}

void FrameWriter::FrameHead(RecordType type, uint64_t record_bytes) {
  ByteWriter writer(buffer_);
  writer.LittleEndian64(EncodeFrameLength(record_bytes));
  writer.VarintField(kTypeField, static_cast<uint64_t>(type));
  writer.VarintField(kCrcField, crc_);
}

void FrameWriter::Pad(uint64_t record_bytes) {
  uint64_t pad = PadBytes(record_bytes);
  ByteWriter(buffer_).Zeros(pad);
  size_ += kFrameHeadBytes + record_bytes + pad;
}

void FrameWriter::AddRecord(RecordType type, std::string_view data) {
  crc_ = ExtendCrc32c(crc_, data);
  uint64_t record_bytes = RecordHeadBytes(type, crc_) + BytesFieldSize(kDataField, data.size());
  FrameHead(type, record_bytes);
  ByteWriter(buffer_).BytesField(kDataField, data);
  Pad(record_bytes);
}

void FrameWriter::AddEntry(const raft::Entry& entry) {
  // Data is the last field of an Entry, so an entry is its head (an entry without data, and data's tag and length)
  // followed by bytes that need not be copied.
  raft::Entry bare = entry;
  bare.data = Bytes();
  std::string head;
  raft::EncodeEntry(bare, head);
  if (!entry.data.empty()) ByteWriter(head).BytesFieldHead(kEntryDataField, entry.data.size());
  crc_ = ExtendCrc32c(ExtendCrc32c(crc_, head), entry.data.view());

  size_t entry_bytes = head.size() + entry.data.size();
  uint64_t record_bytes = RecordHeadBytes(RecordType::kEntry, crc_) + BytesFieldSize(kDataField, entry_bytes);
  FrameHead(RecordType::kEntry, record_bytes);
  ByteWriter writer(buffer_);
  writer.BytesFieldHead(kDataField, entry_bytes);
  writer.Raw(head);
  if (entry.data.size() < kSharedDataBytesMin) {
    writer.Raw(entry.data.view());
  } else {
    pieces_.push_back(Bytes::Copy(buffer_));
    buffer_.clear();
    pieces_.push_back(entry.data);
  }
  Pad(record_bytes);
}

void FrameWriter::AddState(const raft::HardState& state) {
  std::string data;
  raft::EncodeHardState(state, data);
  AddRecord(RecordType::kState, data);
}

void FrameWriter::AddEmptySnapshot() {
  std::string data;
  ByteWriter writer(data);
  writer.VarintField(1, 0);
  writer.VarintField(2, 0);
  AddRecord(RecordType::kSnapshot, data);
}

void FrameWriter::AddCrc() {
  uint64_t record_bytes = RecordHeadBytes(RecordType::kCrc, crc_);
  FrameHead(RecordType::kCrc, record_bytes);
  Pad(record_bytes);
}

std::vector<Bytes> FrameWriter::TakePieces() {
  if (!buffer_.empty()) pieces_.push_back(Bytes::Copy(buffer_));
  buffer_.clear();
  return std::exchange(pieces_, {});
}

}  // namespace detcd::wal
