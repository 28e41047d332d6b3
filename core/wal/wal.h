// The write-ahead log in etcd's own format (format.md, reference/disk.md 2-6): segments in `member/wal`, one batch and
// one sync in flight. It is the only durable state of this release: everything else is rebuilt from it.
//
//   Wal wal(host, options, listener);
//   wal.Open(bootstrap);      // OnMetadata, OnCommitted..., OnOpened   or OnFailed
//   wal.Append(batch);        // OnAppended(sequence)
//
// What must hold: after OnAppended of a batch with `sync`, no crash loses it or anything before it. Recovery tells a torn
// tail (unsynced bytes lost in a crash: cut off, with a copy kept) from damage (refused with a message that names file,
// offset and what was found), and never drops a synced record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/types.h"
#include "core/io/host.h"
#include "core/raft/message.h"

namespace detcd::wal {

struct WalOptions {
  uint64_t segment_bytes = 0;      // cut after a batch that reaches this (kWalSegmentBytes in production)
  uint64_t read_bytes = 0;         // one sequential read of recovery
};

// Whose log this is; in the first records of every segment.
struct WalMetadata {
  MemberId member;
  ClusterId cluster;
  friend bool operator==(const WalMetadata&, const WalMetadata&) = default;
};

// What a fresh log starts with (peer.md 15): written, synced and made visible under its final name before OnOpened.
struct WalBootstrap {
  WalMetadata metadata;
  std::vector<raft::Entry> entries;
  raft::HardState hard_state;
};

// One group of records that becomes durable together: entries first, then the hard state.
struct WalBatch {
  std::vector<raft::Entry> entries;
  std::optional<raft::HardState> hard_state;
  bool sync = false;  // must be set with entries: telling a torn tail from damage rests on it
};

class WalListener {
 public:
  // Recovery: the log is there and its metadata is this. Not called for a fresh log.
  virtual void OnWalMetadata(const WalMetadata& metadata) = 0;
  // Recovery: the next committed entries in order (known committed from the hard states read so far); never taken back.
  // Handed over in pieces so that memory stays bounded.
  virtual void OnWalCommitted(std::vector<raft::Entry> entries) = 0;
  // The log is ready. `tail` are the entries above the last hard state's commit index, `hard_state` the last one.
  // For a fresh log: the bootstrap entries came through OnWalCommitted before.
  virtual void OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry> tail) = 0;
  // The batch of Append number `sequence` (from 1) is written, and durable if it asked for that.
  virtual void OnWalAppended(uint64_t sequence) = 0;
  // The answer to Read.
  virtual void OnWalRead(uint64_t token, std::vector<raft::Entry> entries) = 0;
  // The log cannot go on: damage at opening, a failed write or sync, no space. The member must stop with `reason`.
  // Nothing follows.
  virtual void OnWalFailed(std::string reason) = 0;

 protected:
  ~WalListener() = default;
};

class Wal {
 public:
  Wal(Host& host, const WalOptions& options, WalListener& listener);
  ~Wal();
  Wal(const Wal&) = delete;
  Wal& operator=(const Wal&) = delete;

  // Starts recovery, or makes a fresh log from `bootstrap` when there is none (a folder without segments).
  // A fresh log without `bootstrap` ends in OnWalFailed.
  void Open(std::optional<WalBootstrap> bootstrap);

  // Writes a batch; one at a time: the caller waits for OnWalAppended. Returns its sequence number. Cuts to the next
  // segment when the current one is full, before the completion is reported.
  uint64_t Append(WalBatch batch);
  bool Busy() const;

  // Reads entries [first, last] back from the segments, stopping after the one that reaches `bytes_max` (at least one).
  // Only entries whose Append completed. Several reads may be in flight; appends do not wait for them. The answer is
  // shorter, possibly empty, where the range passes the end of the log or an append replaces entries of it meanwhile.
  void Read(LogIndex first, LogIndex last, size_t bytes_max, uint64_t token);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detcd::wal
