// Bounded reading and writing of the byte layouts that are ours to parse by hand: fixed-width integers and the protobuf
// wire format of raftpb and walpb, which are on the hot path and on the disk. Everything else goes through generated
// protobuf code.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace detcd {

// Appends to a string that the caller owns.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void Raw(std::string_view bytes) { out_.append(bytes); }
  void Zeros(size_t count) { out_.append(count, '\0'); }
  void LittleEndian64(uint64_t v);
  void BigEndian64(uint64_t v);
  void Varint(uint64_t v);

  // Protobuf fields: tag, then value.
  void VarintField(uint32_t number, uint64_t v);
  void BytesField(uint32_t number, std::string_view bytes);
  // The tag and length of a bytes or message field whose `size` bytes the caller writes next.
  void BytesFieldHead(uint32_t number, size_t size);

 private:
  std::string& out_;
};

// Sizes of what ByteWriter writes, to know a length before writing it.
size_t VarintSize(uint64_t v);
size_t VarintFieldSize(uint32_t number, uint64_t v);
size_t BytesFieldSize(uint32_t number, size_t size);

// Reads from a view that outlives it. After a read past the end or a malformed varint, ok() is false for good and every
// further read gives zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return position_ == bytes_.size(); }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  uint8_t Byte();
  uint64_t LittleEndian64();
  uint64_t BigEndian64();
  uint64_t Varint();
  std::string_view Raw(size_t size);
  void Fail() { ok_ = false, position_ = bytes_.size(); }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

// One field of a protobuf message. `bytes` is a view into the message; for wire types other than 2 it is empty.
struct ProtoField {
  uint32_t number = 0;
  uint32_t wire_type = 0;  // 0 varint, 1 fixed 64, 2 bytes, 5 fixed 32
  uint64_t varint = 0;     // also the fixed values
  std::string_view bytes;
};

// Walks the fields of a message in the order of its bytes:
//   for (ProtoFields fields(data); fields.Next(field);) switch (field.number) { ... }
// Groups and field number 0 are malformed. After the loop ok() tells whether the whole message was well formed.
class ProtoFields {
 public:
  explicit ProtoFields(std::string_view message) : reader_(message) {}
  bool Next(ProtoField& field);
  bool ok() const { return reader_.ok(); }

 private:
  ByteReader reader_;
};

}  // namespace detcd
