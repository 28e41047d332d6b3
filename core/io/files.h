// Files and folders, asynchronous. Every call ends in one event at the listener that owns the handle, in the order of
// the calls on that handle; between handles there is no order. Offsets and sizes are in bytes.
//
// What a crash keeps:
//   - of a file, all that was written before the call of a Sync that completed; of what was written later each 512-byte
//     sector is old or new, never mixed inside, in any combination. The size is old or new too, at least what the
//     kept sectors of the synced part need.
//   - of a folder, all entries (made, renamed, removed) as of the call of a Directory::Sync that completed; each later
//     change is there or not. A rename is atomic: the target is the old or the new file, never absent.
//   - a file whose folder entry is lost is lost, synced or not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/io/io_error.h"

namespace detcd {

inline constexpr uint64_t kSectorBytes = 512;  // what a device writes whole or not at all

// Names one call to the listener; chosen by the caller.
using FileToken = uint64_t;

struct FileResult {
  IoError error = IoError::kOk;
  Bytes data;                      // ReadAt: what was read, shorter at the end of the file
  uint64_t size = 0;               // Open: the size of the file
  std::vector<std::string> names;  // Directory::List: entries in ascending byte order, without . and ..
};

// Hears how calls on one File or Directory ended.
class FileListener {
 public:
  virtual void OnFileDone(FileToken token, FileResult result) = 0;

 protected:
  ~FileListener() = default;
};

// One open file of this incarnation. Dropped, with all that is pending, when the incarnation ends. Destroying a live one
// closes it: calls already made still take effect (the caller waits for completions that matter), no event follows.
class File {
 public:
  virtual ~File() = default;

  // Writes `pieces` one after another at `offset`; the file grows as needed, a gap reads as zeros. Readable once done,
  // durable after a later Sync. The bytes live until the completion.
  // kNoSpace: nothing is known of the range. kDevice: the member must stop.
  virtual void WriteAt(uint64_t offset, std::span<const Bytes> pieces, FileToken token) = 0;

  // Up to `size` bytes from `offset`; fewer only at the end of the file.
  virtual void ReadAt(uint64_t offset, uint64_t size, FileToken token) = 0;

  // Takes disk space for [0, size) and makes the file at least that long; new bytes read as zeros.
  virtual void Preallocate(uint64_t size, FileToken token) = 0;

  // Makes the file exactly `size` long.
  virtual void Truncate(uint64_t size, FileToken token) = 0;

  // OK: every call on this file made before this one outlives power loss, size included (the name does not: see
  // Directory::Sync). Any error is fatal and never retried, because the cached pages may already be gone.
  virtual void Sync(FileToken token) = 0;
};

enum class OpenMode : uint8_t {
  kRead,         // kNotFound when it is absent
  kWrite,        // read and write; kNotFound when it is absent; takes the write lock (kLocked when another holds it)
  kCreate,       // as kWrite, made empty when it is absent
  kCreateNew,    // as kWrite, made empty; kExists when it is there
};

// One folder of this incarnation; names are plain, without slashes. Calls run in order.
class Directory {
 public:
  virtual ~Directory() = default;

  // The handle is usable at once (calls queue behind the opening); `listener` hears the opening itself under `token`
  // with the size, or an error, after which every call on the file ends in the same error.
  virtual std::unique_ptr<File> Open(std::string_view name, OpenMode mode, FileListener& listener, FileToken token) = 0;

  virtual void Rename(std::string_view from, std::string_view to, FileToken token) = 0;  // replaces a file at `to`
  virtual void Unlink(std::string_view name, FileToken token) = 0;                       // a file or an empty folder
  virtual void List(FileToken token) = 0;

  // OK: every entry made, renamed or removed in this folder by calls before this one outlives power loss.
  virtual void Sync(FileToken token) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Opens the folder `path`, relative to this member's data ("" is the data folder itself, "member/wal" below it). With
  // `create`, makes it and its missing parents (mode 0700). The handle is usable at once, as in Directory::Open.
  virtual std::unique_ptr<Directory> OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                                   FileToken token) = 0;
};

}  // namespace detcd
