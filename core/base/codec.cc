#include "core/base/codec.h"

#include <bit>

namespace detcd {
namespace {

constexpr uint32_t kWireVarint = 0;
constexpr uint32_t kWireFixed64 = 1;
constexpr uint32_t kWireBytes = 2;
constexpr uint32_t kWireFixed32 = 5;

}  // namespace

void ByteWriter::LittleEndian64(uint64_t v) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(v >> (8 * i));
  out_.append(bytes, 8);
}

void ByteWriter::BigEndian64(uint64_t v) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(v >> (56 - 8 * i));
  out_.append(bytes, 8);
}

void ByteWriter::Varint(uint64_t v) {
  char bytes[10];
  size_t size = 0;
  while (v >= 0x80) {
    bytes[size++] = static_cast<char>(v | 0x80);
    v >>= 7;
  }
  bytes[size++] = static_cast<char>(v);
  out_.append(bytes, size);
}

void ByteWriter::VarintField(uint32_t number, uint64_t v) {
  Varint(uint64_t{number} << 3 | kWireVarint);
  Varint(v);
}

void ByteWriter::BytesField(uint32_t number, std::string_view bytes) {
  BytesFieldHead(number, bytes.size());
  out_.append(bytes);
}

void ByteWriter::BytesFieldHead(uint32_t number, size_t size) {
  Varint(uint64_t{number} << 3 | kWireBytes);
  Varint(size);
}

size_t VarintSize(uint64_t v) { return (static_cast<size_t>(std::bit_width(v | 1)) + 6) / 7; }

size_t VarintFieldSize(uint32_t number, uint64_t v) { return VarintSize(uint64_t{number} << 3) + VarintSize(v); }

size_t BytesFieldSize(uint32_t number, size_t size) {
  return VarintSize(uint64_t{number} << 3) + VarintSize(size) + size;
}

uint8_t ByteReader::Byte() {
  if (remaining() < 1) {
    Fail();
    return 0;
  }
  return static_cast<uint8_t>(bytes_[position_++]);
}

uint64_t ByteReader::LittleEndian64() {
  std::string_view raw = Raw(8);
  uint64_t v = 0;
  for (size_t i = 0; i < raw.size(); ++i) v |= uint64_t{static_cast<uint8_t>(raw[i])} << (8 * i);
  return v;
}

uint64_t ByteReader::BigEndian64() {
  std::string_view raw = Raw(8);
  uint64_t v = 0;
  for (char c : raw) v = v << 8 | static_cast<uint8_t>(c);
  return v;
}

uint64_t ByteReader::Varint() {
  uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = Byte();
    if (!ok_) return 0;
    // The tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) break;
    v |= uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80) == 0) return v;
  }
  Fail();
  return 0;
}

std::string_view ByteReader::Raw(size_t size) {
  if (remaining() < size) {
    Fail();
    return {};
  }
  std::string_view raw = bytes_.substr(position_, size);
  position_ += size;
  return raw;
}

bool ProtoFields::Next(ProtoField& field) {
  if (!reader_.ok() || reader_.AtEnd()) return false;
  uint64_t tag = reader_.Varint();
  field = ProtoField{.number = static_cast<uint32_t>(tag >> 3), .wire_type = static_cast<uint32_t>(tag & 7)};
  if (tag >> 3 == 0 || tag >> 32 != 0) {
    reader_.Fail();
    return false;
  }
  switch (field.wire_type) {
    case kWireVarint:
      field.varint = reader_.Varint();
      break;
    case kWireFixed64:
      field.varint = reader_.LittleEndian64();
      break;
    case kWireBytes:
      field.bytes = reader_.Raw(reader_.Varint());
      break;
    case kWireFixed32: {
      std::string_view raw = reader_.Raw(4);
      for (size_t i = 0; i < raw.size(); ++i) field.varint |= uint64_t{static_cast<uint8_t>(raw[i])} << (8 * i);
      break;
    }
    default:  // Groups are not used by any message of ours.
      reader_.Fail();
  }
  return reader_.ok();
}

}  // namespace detcd
