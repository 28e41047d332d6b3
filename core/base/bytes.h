// Immutable byte strings that are shared, not copied: a put's value is one allocation from the connection through the
// log and the store to the follower's message. Slices share their parent's block.
//
//   Bytes record = Bytes::Copy("abcdef");
//   Bytes tail = record.Slice(2, 4);   // "cdef", no copy
//
// The count is not atomic: copies are made and dropped on the thread of the core only. Another thread may read the
// bytes while the core keeps a copy alive for it (a write in flight does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace detcd {

class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes& other) : block_(other.block_), data_(other.data_), size_(other.size_) {
    if (block_ != nullptr) ++block_->references;
  }
  Bytes(Bytes&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Bytes() {
    if (block_ != nullptr && --block_->references == 0) ::operator delete(block_);
  }

  // A copy of `content`. Empty content needs no allocation.
  static Bytes Copy(std::string_view content) {
    if (content.empty()) return Bytes();
    return Build(content.size(), [&](char* out) { std::memcpy(out, content.data(), content.size()); });
  }

  // Bytes of length `size`, filled by `fill(char*)` before anybody else can see them.
  template <class Fill>
  static Bytes Build(size_t size, Fill&& fill) {
    Bytes result;
    if (size == 0) return result;
    auto* block = static_cast<Block*>(::operator new(sizeof(Block) + size));
    block->references = 1;
    char* start = reinterpret_cast<char*>(block + 1);
    fill(start);
    result.block_ = block;
    result.data_ = start;
    result.size_ = size;
    return result;
  }

  // Bytes that live as long as the program (literals). Never counted.
  static Bytes Static(std::string_view content) {
    Bytes result;
    result.data_ = content.data();
    result.size_ = content.size();
    return result;
  }

  // The part [offset, offset + size); the caller keeps it inside. Shares the block.
  Bytes Slice(size_t offset, size_t size) const {
    Bytes result(*this);
    result.data_ += offset;
    result.size_ = size;
    return result;
  }

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {data_, size_}; }

  friend bool operator==(const Bytes& a, const Bytes& b) { return a.view() == b.view(); }

 private:
  struct Block {
    uint64_t references;
  };

  Block* block_ = nullptr;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace detcd
