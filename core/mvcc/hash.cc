#include "core/mvcc/hash.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "core/base/check.h"
#include "core/base/crc32c.h"

namespace detcd::mvcc {
namespace {

constexpr std::string_view kBucketName = "key";

// The head of an encoded change: all but the key's and the value's own bytes fits here.
class ShortText {
 public:
  void Byte(uint8_t byte) { bytes_[size_++] = static_cast<char>(byte); }
  void BigEndian64(uint64_t number) {
    for (int shift = 56; shift >= 0; shift -= 8) Byte(static_cast<uint8_t>(number >> shift));
  }
  void Varint(uint64_t number) {
    for (; number >= 0x80; number >>= 7) Byte(static_cast<uint8_t>(number | 0x80));
    Byte(static_cast<uint8_t>(number));
  }
  // A field of proto3: absent when zero.
  void NumberField(uint32_t field, int64_t number) {
    if (number == 0) return;
    Varint(field << 3);
    Varint(static_cast<uint64_t>(number));
  }
  void BytesField(uint32_t field, size_t size) {
    Varint(field << 3 | 2);
    Varint(size);
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 96> bytes_;
  size_t size_ = 0;
};

uint32_t AddChange(uint32_t crc, const KeyRecord& record, const KeyVersion& version) {
  ShortText head;
  head.BigEndian64(static_cast<uint64_t>(version.main.value));
  head.Byte('_');
  head.BigEndian64(version.sub);
  if (version.IsTombstone()) head.Byte('t');
  head.BytesField(1, record.key.size());
  crc = ExtendCrc32c(crc, head.view());
  crc = ExtendCrc32c(crc, record.key.view());
  if (version.IsTombstone()) return crc;

  ShortText middle;
  middle.NumberField(2, version.create.value);
  middle.NumberField(3, version.main.value);
  middle.NumberField(4, version.version);
  if (!version.value.empty()) middle.BytesField(5, version.value.size());
  crc = ExtendCrc32c(crc, middle.view());
  crc = ExtendCrc32c(crc, version.value.view());
  ShortText tail;
  tail.NumberField(6, version.lease.value);
  return ExtendCrc32c(crc, tail.view());
}

// The change of `record` that compaction to `at` keeps in etcd's rules; the end of its versions when there is none.
// These are the rules of its hash, which also hold where its compaction goes wrong: of a key deleted and put again in
// the revision `at`, the tombstone counts.
const KeyVersion* KeptAt(const KeyRecord& record, Revision at) {
  const KeyVersion* const none = record.versions.end();
  const KeyVersion* after = std::upper_bound(record.versions.begin(), none, at,
                                             [](Revision r, const KeyVersion& version) { return r < version.main; });
  if (after == record.versions.begin()) return none;
  const KeyVersion* newest = after - 1;
  const KeyVersion* first_of_main = newest;
  while (first_of_main != record.versions.begin() && (first_of_main - 1)->main == at) --first_of_main;
  for (const KeyVersion* version = first_of_main; version->main == at; ++version) {
    if (version->IsTombstone()) return version;
    if (version == newest) break;
  }
  return newest->IsTombstone() ? none : newest;
}

}  // namespace

HashJob::HashJob(const KeyIndex& index, const HashScope& scope)
    : index_(index), scope_(scope), crc_(ExtendCrc32c(0, kBucketName)) {}

bool HashJob::Step(size_t changes_max) {
  if (!gathered_) {
    Gather(changes_max);
    return false;
  }
  Merge(changes_max);
  return runs_.empty();
}

HashResult HashJob::result() const {
  CHECK(gathered_ && runs_.empty());
  return {.hash = crc_, .compact_revision = scope_.compact_revision, .revision = scope_.revision};
}

bool HashJob::Later(const Item& a, const Item& b) { return std::tie(a.main, a.sub) > std::tie(b.main, b.sub); }

void HashJob::Gather(size_t changes_max) {
  const size_t start = items_.size();
  // A step also counts keys without changes in the scope: it is short whatever it meets.
  size_t keys = 0;
  gathered_ = true;
  index_.ForEach(next_key_, std::nullopt, [&](const KeyRecord& record) {
    if (keys++ == changes_max || items_.size() - start >= changes_max) {
      next_key_ = record.key.view();
      gathered_ = false;
      return false;
    }
    AddRecord(record);
    return true;
  });
  std::sort(items_.begin() + static_cast<std::ptrdiff_t>(start), items_.end(),
            [](const Item& a, const Item& b) { return Later(b, a); });
  if (items_.size() > start) runs_.push_back({start, items_.size()});
  if (!gathered_) return;
  std::make_heap(runs_.begin(), runs_.end(), [&](const Run& a, const Run& b) { return Later(items_[a.next], items_[b.next]); });
}

void HashJob::AddRecord(const KeyRecord& record) {
  const KeyVersion* kept = KeptAt(record, scope_.revision);
  if (kept != record.versions.end() && kept->IsTombstone() && !scope_.keeps_tombstones) kept = record.versions.end();
  if (kept != record.versions.end()) any_kept_ = true;
  // Of the changes up to the compaction, the newest has survived it, and a tombstone there is never counted.
  const KeyVersion* first = std::upper_bound(record.versions.begin(), record.versions.end(), scope_.compact_revision,
                                             [](Revision r, const KeyVersion& version) { return r < version.main; });
  if (first != record.versions.begin() && !(first - 1)->IsTombstone()) --first;
  for (const KeyVersion* version = first; version != record.versions.end() && version->main <= scope_.revision; ++version) {
    items_.push_back({.main = version->main,
                      .sub = version->sub,
                      .hidden = version->main <= scope_.compact_revision && version != kept,
                      .record = &record});
  }
}

void HashJob::Merge(size_t changes_max) {
  const auto later = [&](const Run& a, const Run& b) { return Later(items_[a.next], items_[b.next]); };
  for (size_t n = 0; n < changes_max && !runs_.empty(); ++n) {
    std::pop_heap(runs_.begin(), runs_.end(), later);
    Run& earliest = runs_.back();
    AddToHash(items_[earliest.next]);
    if (++earliest.next == earliest.limit) {
      runs_.pop_back();
    } else {
      std::push_heap(runs_.begin(), runs_.end(), later);
    }
  }
}

void HashJob::AddToHash(const Item& item) {
  if (item.hidden && any_kept_) return;
  // Found again: the block may have moved since, under changes above the scope.
  const VersionList& versions = item.record->versions;
  const KeyVersion* version =
      std::lower_bound(versions.begin(), versions.end(), item, [](const KeyVersion& v, const Item& i) {
        return std::tie(v.main, v.sub) < std::tie(i.main, i.sub);
      });
  CHECK(version != versions.end() && version->main == item.main && version->sub == item.sub);
  crc_ = AddChange(crc_, *item.record, *version);
}

}  // namespace detcd::mvcc
