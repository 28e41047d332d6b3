// The disk of one machine: it outlives incarnations. Files are sparse pages, with the old bytes of every sector that was
// written since the last sync; folders are the entries as they are and as they were last synced, with the changes in
// between.
//
// What Crash leaves is the law of core/io/files.h: each unsynced sector old or new, the size old or new, each unsynced
// change of a folder there or not. Each crash draws whether all, none or a random part of what was not synced survives:
// the two ends are rare in a random mix and find bugs of their own.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/files.h"
#include "core/io/random.h"
#include "sim/faults/effects.h"

namespace detcd::sim {

inline constexpr uint64_t kPageBytes = 4'096;
inline constexpr uint64_t kFileBytesMax = uint64_t{1} << 40;

// Space taken on one disk.
struct DiskSpace {
  uint64_t used = 0;
  uint64_t limit = ~uint64_t{0};
};

// A file or a folder. Kept alive by entries (present or synced), by changes of entries, and by open handles.
class Inode {
 public:
  Inode(DiskSpace& space, bool folder) : is_folder(folder), space_(space) {}
  ~Inode() { space_.used -= charged_; }
  Inode(const Inode&) = delete;
  Inode& operator=(const Inode&) = delete;

  // --- a file ---
  uint64_t size() const { return size_; }
  // False when there is no space; then part may be written.
  bool Write(uint64_t offset, std::string_view bytes);
  Bytes Read(uint64_t offset, uint64_t size) const;
  bool Preallocate(uint64_t size);
  void Truncate(uint64_t size);
  // All that was written is safe.
  void Synced();
  // A sync that failed: each sector written since the last one is kept or goes back to its old bytes, and none counts
  // as unsynced any more (the kernel marks the pages clean).
  void SyncFailed(KeyedRandom& random, Effects& effects);
  // A sync that reports success and makes nothing safe: what was written since the last honest one stays unsynced.
  void SyncLied();
  // Each unsynced sector survives with `keep_permille`, so does the size. Whether anything was lost that a sync had
  // reported to be safe.
  bool CrashContent(uint32_t keep_permille, KeyedRandom& random, Effects& effects);
  // The last sectors of the file that hold anything, at most `sectors`, become zeros, and stay so. How many there were.
  uint64_t ZeroTail(uint64_t sectors);
  // Flips one bit, as a failing medium does; false when nothing is stored there.
  bool FlipBit(uint64_t offset, uint32_t bit);
  size_t unsynced_sectors() const { return old_sectors_.size(); }

  // --- a folder ---
  struct Change {
    enum class Kind : uint8_t { kAdd, kRemove, kRename } kind;
    std::string name;
    std::string to;  // kRename
    std::shared_ptr<Inode> inode;
  };
  using Entries = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;
  const Entries& entries() const { return entries_; }
  std::shared_ptr<Inode> Find(std::string_view name) const;
  void Add(std::string_view name, std::shared_ptr<Inode> inode);
  void Remove(std::string_view name);
  void Rename(std::string_view from, std::string_view to);
  void EntriesSynced();
  void EntriesSyncLied() { lied_changes_ = changes_.size(); }
  bool CrashEntries(uint32_t keep_permille, KeyedRandom& random, Effects& effects);

  const bool is_folder;
  bool write_locked = false;

 private:
  using Sector = std::array<char, kSectorBytes>;
  using Page = std::array<char, kPageBytes>;

  static void Apply(Entries& entries, const Change& change);
  // Makes the page and charges for it; null when there is no space.
  Page* MakePage(uint64_t number);
  const Page* FindPage(uint64_t number) const;
  void KeepOld(uint64_t sector);
  void Restore(uint64_t sector, const Sector& old);
  bool Holds(uint64_t sector, const Sector& bytes) const;
  void ZeroFrom(uint64_t offset);

  DiskSpace& space_;
  uint64_t charged_ = 0;
  uint64_t size_ = 0;
  uint64_t synced_size_ = 0;
  uint64_t lied_size_ = 0;  // what the last sync reported to be safe
  uint64_t reserved_ = 0;  // preallocated: pages below are paid for
  std::map<uint64_t, std::unique_ptr<Page>> pages_;
  std::map<uint64_t, Sector> old_sectors_;  // by sector: its bytes at the last sync
  std::set<uint64_t> lied_sectors_;         // of those: reported to be safe

  Entries entries_;
  Entries synced_entries_;
  std::vector<Change> changes_;  // since the last sync, in order
  size_t lied_changes_ = 0;      // the first of them: reported to be safe
};

// What of the unsynced a power loss leaves: drawn among all, none and a random part, or one of these.
enum class Survival : uint8_t { kDrawn, kNothing, kMixed, kEverything };

class SimDisk {
 public:
  SimDisk();

  const std::shared_ptr<Inode>& root() const { return root_; }
  DiskSpace& space() { return space_; }
  std::shared_ptr<Inode> MakeFile() { return std::make_shared<Inode>(space_, false); }
  std::shared_ptr<Inode> MakeFolder() { return std::make_shared<Inode>(space_, true); }
  // The file or folder at `path` ("" is the root); null when there is none.
  std::shared_ptr<Inode> Walk(std::string_view path) const;

  // Power loss. No handle is open any more.
  void Crash(KeyedRandom& random, Effects& effects, Survival survival = Survival::kDrawn);
  // Leaves `bytes` of space from now on.
  void LimitTo(uint64_t bytes) { space_.limit = space_.used + bytes; }
  void Unlimit() { space_.limit = ~uint64_t{0}; }
  // An empty disk takes its place. No handle is open any more. False when it was empty.
  bool Wipe();
  // Whether it is not what its user made durable, and will not be again: bytes altered, or lost though a sync had
  // reported them to be safe.
  bool harmed() const { return harmed_; }
  void Harm() { harmed_ = true; }

 private:
  DiskSpace space_;
  std::shared_ptr<Inode> root_;
  bool harmed_ = false;
};

}  // namespace detcd::sim
