// The system calls behind real_files.h, each carried to its end: partial transfers and interruptions are repeated. They
// run on a worker's thread and see no Bytes counted, only their contents.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/io/files.h"

namespace detcd::realnet {

// A name of an entry: 1..255 bytes, no slash, no zero byte, not `.` or `..`.
bool IsPlainName(std::string_view name);

// A file opened by OpenFile.
struct OpenedFile {
  IoError error = IoError::kOk;
  int descriptor = -1;
  uint64_t size = 0;
};

// Opens `name` in the folder `directory`, mode 0600; the modes that write take an open-file-description lock for
// writing on the whole file, the kind etcd takes on its log.
OpenedFile OpenFile(int directory, const std::string& name, OpenMode mode);

// Opens the folder `path`. With `create`, makes it and its missing parents, each synced into its parent: nobody else
// has a handle to do so.
OpenedFile OpenFolder(const std::string& path, bool create);

IoError WriteAll(int descriptor, uint64_t offset, const std::vector<Bytes>& pieces);
IoError ReadUpTo(int descriptor, uint64_t offset, uint64_t size, Bytes& out);
IoError AllocateTo(int descriptor, uint64_t size);
IoError TruncateTo(int descriptor, uint64_t size);
IoError SyncFile(int descriptor);    // fdatasync: contents and size
IoError SyncFolder(int descriptor);  // fsync
IoError RenameEntry(int directory, const std::string& from, const std::string& to);
IoError RemoveEntry(int directory, const std::string& name);
IoError ListEntries(int directory, std::vector<std::string>& names);

}  // namespace detcd::realnet
