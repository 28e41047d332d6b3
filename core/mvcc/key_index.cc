#include "core/mvcc/key_index.h"

#include <algorithm>
#include <utility>

namespace detcd::mvcc {

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

uint64_t KeyIndex::KeyBytes(size_t key_size) {
  // The record, its key's block with its count, and a slot in each structure at their usual fill.
  return sizeof(KeyRecord) + 8 + key_size + sizeof(Slot) * 4 / 3 + (sizeof(KeyRecord*) + 1) * 4 / 3;
}

}  // namespace detcd::mvcc
