#include "core/mvcc/key_index.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/check.h"

namespace detcd::mvcc {

KeyVersion& VersionList::Add() {
  if (first_ + size_ == capacity_) {
    CHECK(size_ < std::numeric_limits<uint32_t>::max() / 2);
    Move(size_ == 0 ? 1 : size_ * 2);
  }
  return *std::construct_at(block_ + first_ + size_++);
}

void VersionList::RemoveOldest(size_t count) {
  CHECK(count <= size_);
  std::destroy_n(block_ + first_, count);
  first_ += static_cast<uint32_t>(count);
  size_ -= static_cast<uint32_t>(count);
  // Three quarters empty: each version is moved at most once for each three that were taken.
  if (size_ <= capacity_ / 4) Move(size_);
}

void VersionList::Move(uint32_t capacity) {
  KeyVersion* block = capacity == 0 ? nullptr : std::allocator<KeyVersion>().allocate(capacity);
  std::uninitialized_move_n(block_ + first_, size_, block);
  const uint32_t size = size_;
  Release();
  block_ = block;
  size_ = size;
  capacity_ = capacity;
}

void VersionList::Release() {
  if (block_ == nullptr) return;
  std::destroy_n(block_ + first_, size_);
  std::allocator<KeyVersion>().deallocate(block_, capacity_);
  block_ = nullptr;
  first_ = size_ = capacity_ = 0;
}

const KeyVersion* KeyRecord::VisibleAt(Revision at) const {
  if (versions.back().main <= at) return Newest();
  auto after = std::upper_bound(versions.begin(), versions.end(), at,
                                [](Revision r, const KeyVersion& version) { return r < version.main; });
  if (after == versions.begin()) return nullptr;
  const KeyVersion& version = *(after - 1);
  return version.IsTombstone() ? nullptr : &version;
}

const KeyVersion* KeyRecord::Newest() const {
  const KeyVersion& version = versions.back();
  return version.IsTombstone() ? nullptr : &version;
}

KeyIndex::Probe KeyIndex::Probe::Of(std::string_view key) {
  uint64_t prefix = 0;
  for (size_t i = 0; i < 8; ++i) prefix = prefix << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
  return {prefix, key};
}

KeyRecord* KeyIndex::Find(std::string_view key) const {
  auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : *it;
}

KeyRecord& KeyIndex::FindOrAdd(std::string_view key) {
  if (KeyRecord* found = Find(key)) return *found;
  auto record = std::make_unique<KeyRecord>();
  record->key = Bytes::Copy(key);
  KeyRecord* added = record.get();
  ordered_.insert(Slot{Probe::Of(key).prefix, std::move(record)});
  by_key_.insert(added);
  return *added;
}

void KeyIndex::Remove(KeyRecord& record) {
  CHECK(record.versions.empty());
  by_key_.erase(&record);
  ordered_.erase(ordered_.find(Probe::Of(record.key.view())));
}

uint64_t KeyIndex::KeyBytes(size_t key_size) {
  // The record, its key's block with its count, and a slot in each structure at their usual fill.
  return sizeof(KeyRecord) + 8 + key_size + sizeof(Slot) * 4 / 3 + (sizeof(KeyRecord*) + 1) * 4 / 3;
}

}  // namespace detcd::mvcc
