#include "sim/sim_disk.h"

#include <algorithm>

#include "core/base/check.h"

namespace detcd::sim {

// --- Files ---

Inode::Page* Inode::MakePage(uint64_t number) {
  auto found = pages_.lower_bound(number);
  if (found != pages_.end() && found->first == number) return found->second.get();
  if (number * kPageBytes >= reserved_) {
    if (space_.used + kPageBytes > space_.limit) return nullptr;
    space_.used += kPageBytes;
    charged_ += kPageBytes;
  }
  auto page = std::make_unique<Page>();  // zeros
  return pages_.emplace_hint(found, number, std::move(page))->second.get();
}

const Inode::Page* Inode::FindPage(uint64_t number) const {
  const auto found = pages_.find(number);
  return found == pages_.end() ? nullptr : found->second.get();
}

void Inode::KeepOld(uint64_t sector) {
  const auto found = old_sectors_.lower_bound(sector);
  if (found != old_sectors_.end() && found->first == sector) return;
  const uint64_t start = sector * kSectorBytes;
  Sector old{};
  if (const Page* page = FindPage(start / kPageBytes)) {
    std::copy_n(page->data() + start % kPageBytes, kSectorBytes, old.data());
  }
  old_sectors_.emplace_hint(found, sector, old);
}

void Inode::Restore(uint64_t sector, const Sector& old) {
  const uint64_t start = sector * kSectorBytes;
  const auto found = pages_.find(start / kPageBytes);
  if (found == pages_.end()) {
    const bool zeros = std::all_of(old.begin(), old.end(), [](char c) { return c == 0; });
    if (zeros) return;
    auto page = std::make_unique<Page>();
    std::copy(old.begin(), old.end(), page->data() + start % kPageBytes);
    pages_.emplace(start / kPageBytes, std::move(page));
    // The truncation that gave this page back was lost with it: it takes its space again, whatever the limit.
    if (start / kPageBytes * kPageBytes >= reserved_) {
      space_.used += kPageBytes;
      charged_ += kPageBytes;
    }
    return;
  }
  std::copy(old.begin(), old.end(), found->second->data() + start % kPageBytes);
}

bool Inode::Holds(uint64_t sector, const Sector& bytes) const {
  const uint64_t start = sector * kSectorBytes;
  const Page* page = FindPage(start / kPageBytes);
  if (page == nullptr) return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
  return std::equal(bytes.begin(), bytes.end(), page->data() + start % kPageBytes);
}

bool Inode::Write(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const uint64_t in_page = offset % kPageBytes;
    const auto part = static_cast<size_t>(std::min<uint64_t>(bytes.size(), kPageBytes - in_page));
    if (offset + part > kFileBytesMax) return false;
    for (uint64_t s = offset / kSectorBytes; s <= (offset + part - 1) / kSectorBytes; ++s) KeepOld(s);
    Page* page = MakePage(offset / kPageBytes);
    if (page == nullptr) return false;
    std::copy_n(bytes.data(), part, page->data() + in_page);
    offset += part;
    size_ = std::max(size_, offset);
    bytes.remove_prefix(part);
  }
  return true;
}

Bytes Inode::Read(uint64_t offset, uint64_t size) const {
  if (offset >= size_) return Bytes();
  size = std::min(size, size_ - offset);
  return Bytes::Build(static_cast<size_t>(size), [&](char* out) {
    for (uint64_t done = 0; done < size;) {
      const uint64_t at = offset + done;
      const auto part = static_cast<size_t>(std::min(size - done, kPageBytes - at % kPageBytes));
      if (const Page* page = FindPage(at / kPageBytes)) {
        std::copy_n(page->data() + at % kPageBytes, part, out + done);
      } else {
        std::fill_n(out + done, part, '\0');
      }
      done += part;
    }
  });
}

bool Inode::Preallocate(uint64_t size) {
  if (size > kFileBytesMax) return false;
  const uint64_t end = (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (end > reserved_) {
    uint64_t cost = end - reserved_;
    const auto first = pages_.lower_bound(reserved_ / kPageBytes);
    const auto limit = pages_.lower_bound(end / kPageBytes);
    cost -= kPageBytes * static_cast<uint64_t>(std::distance(first, limit));
    if (space_.used + cost > space_.limit) return false;
    space_.used += cost;
    charged_ += cost;
    reserved_ = end;
  }
  size_ = std::max(size_, size);
  return true;
}

void Inode::ZeroFrom(uint64_t offset) {
  const uint64_t first_whole = (offset + kPageBytes - 1) / kPageBytes;
  if (offset % kPageBytes != 0) {
    const auto partial = pages_.find(offset / kPageBytes);
    if (partial != pages_.end()) {
      for (uint64_t s = offset / kSectorBytes; s < first_whole * kPageBytes / kSectorBytes; ++s) KeepOld(s);
      std::fill(partial->second->begin() + static_cast<ptrdiff_t>(offset % kPageBytes), partial->second->end(), '\0');
    }
  }
  const auto whole = pages_.lower_bound(first_whole);
  for (auto page = whole; page != pages_.end(); ++page) {
    for (uint64_t i = 0; i < kPageBytes / kSectorBytes; ++i) KeepOld(page->first * (kPageBytes / kSectorBytes) + i);
  }
  const uint64_t pages_end = first_whole * kPageBytes;
  uint64_t freed = 0;
  for (auto page = whole; page != pages_.end(); ++page) freed += page->first * kPageBytes >= reserved_ ? kPageBytes : 0;
  if (reserved_ > pages_end) {
    freed += reserved_ - pages_end;
    reserved_ = pages_end;
  }
  pages_.erase(whole, pages_.end());
  space_.used -= freed;
  charged_ -= freed;
}

void Inode::Truncate(uint64_t size) {
  if (size < size_) ZeroFrom(size);
  size_ = size;
}

void Inode::Synced() {
  old_sectors_.clear();
  lied_sectors_.clear();
  synced_size_ = size_;
  lied_size_ = size_;
}

void Inode::SyncLied() {
  for (const auto& [sector, old] : old_sectors_) lied_sectors_.insert(sector);
  lied_size_ = size_;
}

void Inode::SyncFailed(KeyedRandom& random, Effects& effects) {
  effects.Effective(FaultKind::kSyncError);
  for (const auto& [sector, old] : old_sectors_) {
    if (!random.Chance(1, 2)) continue;
    effects.Effective(FaultKind::kSectorLost);
    Restore(sector, old);
  }
  Synced();
}

bool Inode::CrashContent(uint32_t keep_permille, KeyedRandom& random, Effects& effects) {
  bool harmed = false;
  for (const auto& [sector, old] : old_sectors_) {
    if (random.Chance(keep_permille, 1000)) continue;
    const bool was_safe = lied_sectors_.contains(sector) && !Holds(sector, old);
    effects.Effective(was_safe ? FaultKind::kLyingSync : FaultKind::kSectorLost);
    harmed |= was_safe;
    Restore(sector, old);
  }
  if (size_ != synced_size_ && !random.Chance(keep_permille, 1000)) {
    const bool was_safe = lied_size_ != synced_size_;
    effects.Effective(was_safe ? FaultKind::kLyingSync : FaultKind::kSizeLost);
    harmed |= was_safe;
    const uint64_t kept = synced_size_;
    if (kept < size_) ZeroFrom(kept);
    size_ = kept;
  } else if (size_ < synced_size_) {
    ZeroFrom(size_);  // the truncation survived: nothing that it cut off comes back
  }
  Synced();
  return harmed;
}

uint64_t Inode::ZeroTail(uint64_t sectors) {
  uint64_t zeroed = 0;
  for (auto page = pages_.rbegin(); page != pages_.rend(); ++page) {
    for (uint64_t at = kPageBytes; at > 0; at -= kSectorBytes) {
      if (zeroed == sectors) return zeroed;
      const auto first = page->second->begin() + static_cast<ptrdiff_t>(at - kSectorBytes);
      const bool empty = std::all_of(first, first + kSectorBytes, [](char c) { return c == 0; });
      if (empty) continue;
      std::fill_n(first, kSectorBytes, '\0');
      ++zeroed;
    }
  }
  return zeroed;
}

bool Inode::FlipBit(uint64_t offset, uint32_t bit) {
  const auto found = pages_.find(offset / kPageBytes);
  if (offset >= size_ || found == pages_.end()) return false;
  char& byte = (*found->second)[offset % kPageBytes];
  byte = static_cast<char>(byte ^ (1 << (bit & 7)));
  return true;
}

// --- Folders ---

std::shared_ptr<Inode> Inode::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second;
}

void Inode::Apply(Entries& entries, const Change& change) {
  const auto erase_own = [&](const std::string& name) {
    const auto found = entries.find(name);
    if (found != entries.end() && found->second == change.inode) entries.erase(found);
  };
  switch (change.kind) {
    case Change::Kind::kAdd:
      entries[change.name] = change.inode;
      return;
    case Change::Kind::kRemove:
      return erase_own(change.name);
    case Change::Kind::kRename:
      erase_own(change.name);
      entries[change.to] = change.inode;
      return;
  }
}

void Inode::Add(std::string_view name, std::shared_ptr<Inode> inode) {
  changes_.push_back({Change::Kind::kAdd, std::string(name), {}, std::move(inode)});
  Apply(entries_, changes_.back());
}

void Inode::Remove(std::string_view name) {
  changes_.push_back({Change::Kind::kRemove, std::string(name), {}, Find(name)});
  Apply(entries_, changes_.back());
}

void Inode::Rename(std::string_view from, std::string_view to) {
  if (from == to) return;
  changes_.push_back({Change::Kind::kRename, std::string(from), std::string(to), Find(from)});
  Apply(entries_, changes_.back());
}

void Inode::EntriesSynced() {
  lied_changes_ = 0;
  if (changes_.empty()) return;
  synced_entries_ = entries_;
  changes_.clear();
}

bool Inode::CrashEntries(uint32_t keep_permille, KeyedRandom& random, Effects& effects) {
  bool harmed = false;
  for (size_t i = 0; i < changes_.size(); ++i) {
    if (random.Chance(keep_permille, 1000)) {
      Apply(synced_entries_, changes_[i]);
    } else {
      const bool was_safe = i < lied_changes_;
      effects.Effective(was_safe ? FaultKind::kLyingSync : FaultKind::kEntryLost);
      harmed |= was_safe;
    }
  }
  changes_.clear();
  lied_changes_ = 0;
  entries_ = synced_entries_;
  return harmed;
}

// --- The disk ---

SimDisk::SimDisk() : root_(MakeFolder()) {}

std::shared_ptr<Inode> SimDisk::Walk(std::string_view path) const {
  std::shared_ptr<Inode> at = root_;
  while (!path.empty() && at != nullptr) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name.empty()) continue;
    at = at->is_folder ? at->Find(name) : nullptr;
  }
  return at;
}

bool SimDisk::Wipe() {
  if (root_->entries().empty()) return false;
  root_ = MakeFolder();
  harmed_ = true;
  return true;
}

void SimDisk::Crash(KeyedRandom& random, Effects& effects, Survival survival) {
  if (survival == Survival::kDrawn) {
    const uint64_t style = random.Below(4);
    survival = style == 0 ? Survival::kNothing : style == 1 ? Survival::kEverything : Survival::kMixed;
  }
  uint32_t keep_permille = survival == Survival::kEverything ? 1000 : 0;
  if (survival == Survival::kMixed) keep_permille = static_cast<uint32_t>(random.Between(uint64_t{100}, uint64_t{900}));
  std::vector<std::shared_ptr<Inode>> open = {root_};
  while (!open.empty()) {  // depth first in byte order of the names
    const std::shared_ptr<Inode> inode = std::move(open.back());
    open.pop_back();
    inode->write_locked = false;
    if (!inode->is_folder) {
      harmed_ |= inode->CrashContent(keep_permille, random, effects);
      continue;
    }
    harmed_ |= inode->CrashEntries(keep_permille, random, effects);
    for (auto entry = inode->entries().rbegin(); entry != inode->entries().rend(); ++entry) open.push_back(entry->second);
  }
}

}  // namespace detcd::sim
