#include "checker/requests.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "checker/range_rules.h"

namespace detcd::checker {
namespace {

using Branch = std::vector<Request>;

constexpr std::string_view kFromKey("\0", 1);

// --- what is refused unseen (errors.md 5, semantics.md 7) ---

std::string_view RangeError(const Request& request) {
  if (request.key.empty()) return kErrorEmptyKey;
  if (request.sort_order > SortOrder::kDescend || request.sort_target > SortTarget::kValue) return kErrorSortOption;
  if (!request.streamed) return {};
  bool by_key = request.sort_order == SortOrder::kNone ||
                (request.sort_order == SortOrder::kAscend && request.sort_target == SortTarget::kKey);
  if (!by_key) return kErrorStreamSort;
  bool filtered = request.min_mod_revision != 0 || request.max_mod_revision != 0 || request.min_create_revision != 0 ||
                  request.max_create_revision != 0;
  return filtered ? kErrorStreamFilter : std::string_view();
}

std::string_view OperationsError(const Request& request, size_t operations_max);

std::string_view OperationError(const Request& request, size_t operations_max) {
  switch (request.kind) {
    case OperationKind::kRange: return RangeError(request);
    case OperationKind::kPut:
      if (request.key.empty()) return kErrorEmptyKey;
      return request.ignore_value && !request.value.empty() ? kErrorValueProvided : std::string_view();
    case OperationKind::kDelete: return request.key.empty() ? kErrorEmptyKey : std::string_view();
    case OperationKind::kTxn: return OperationsError(request, operations_max);
    case OperationKind::kCompact: case OperationKind::kHashKv: return {};
  }
  return {};
}

std::string_view OperationsError(const Request& request, size_t operations_max) {
  size_t most = std::max({request.compares.size(), request.success.size(), request.failure.size()});
  if (most > operations_max) return kErrorTooManyOps;
  for (const Condition& compare : request.compares) {
    if (compare.key.empty()) return kErrorEmptyKey;
  }
  for (const Branch* branch : {&request.success, &request.failure}) {
    for (const Request& operation : *branch) {
      std::string_view error = OperationError(operation, operations_max - most);
      if (!error.empty()) return error;
    }
  }
  return {};
}

// What one branch puts and deletes, branches of nested transactions included.
struct BranchKeys {
  std::set<std::string> puts;
  std::vector<KeyRange> deleted;
  bool duplicate = false;

  // etcd takes an open end for a plain key here, so such a delete clashes with nothing.
  bool IsDeleted(const std::string& key) const {
    return std::ranges::any_of(deleted, [&](const KeyRange& range) {
      return range.range_end != kFromKey && InRange(key, range.key, range.range_end);
    });
  }
  void Put(const std::string& key) { duplicate = duplicate || IsDeleted(key) || !puts.insert(key).second; }
};

// Deletes of this level come first, then nested transactions one after the other, then puts of this level.
BranchKeys KeysOf(const Branch& branch) {
  BranchKeys keys;
  for (const Request& operation : branch) {
    if (operation.kind == OperationKind::kDelete) keys.deleted.push_back({operation.key, operation.range_end});
  }
  for (const Request& operation : branch) {
    if (operation.kind != OperationKind::kTxn) continue;
    BranchKeys success = KeysOf(operation.success);
    BranchKeys failure = KeysOf(operation.failure);
    keys.duplicate = keys.duplicate || success.duplicate || failure.duplicate;
    for (const std::string& key : success.puts) keys.Put(key);
    for (const std::string& key : failure.puts) {
      if (!success.puts.contains(key)) keys.Put(key);  // only one of the two branches runs
    }
    for (const BranchKeys* nested : {&success, &failure}) {
      keys.deleted.insert(keys.deleted.end(), nested->deleted.begin(), nested->deleted.end());
    }
  }
  for (const Request& operation : branch) {
    if (operation.kind == OperationKind::kPut) keys.Put(operation.key);
  }
  return keys;
}

// --- texts ---

void Add(std::string& text, std::string_view part) { absl::StrAppendFormat(&text, "%d:%s", part.size(), part); }

void AddEffect(std::string& text, const Request& request) {
  absl::StrAppendFormat(&text, "<%d", static_cast<int>(request.kind));
  switch (request.kind) {
    case OperationKind::kPut:
      Add(text, request.key);
      text += request.ignore_value ? 'i' : 'v';
      if (request.ignore_lease) text += 'l';
      Add(text, request.value);
      break;
    case OperationKind::kDelete:
      Add(text, request.key);
      Add(text, request.range_end);
      break;
    case OperationKind::kRange: case OperationKind::kCompact: case OperationKind::kHashKv:
      absl::StrAppendFormat(&text, "@%d", request.revision);  // of a range: whether the transaction is refused
      break;
    case OperationKind::kTxn:
      for (const Condition& compare : request.compares) {
        absl::StrAppendFormat(&text, "?%d,%d,%d", static_cast<int>(compare.target), static_cast<int>(compare.result),
                              compare.number);
        Add(text, compare.key);
        Add(text, compare.range_end);
        Add(text, compare.value);
      }
      for (const Branch* branch : {&request.success, &request.failure}) {
        text += '|';
        for (const Request& operation : *branch) AddEffect(text, operation);
      }
      break;
  }
  text += '>';
}

void CollectRanges(const Request& request, bool written, std::vector<KeyRange>& ranges) {
  if (request.kind == OperationKind::kTxn) {
    if (!written) {
      for (const Condition& compare : request.compares) ranges.push_back({compare.key, compare.range_end});
    }
    for (const Branch* branch : {&request.success, &request.failure}) {
      for (const Request& operation : *branch) CollectRanges(operation, written, ranges);
    }
  } else if (request.kind == OperationKind::kPut) {
    ranges.push_back({request.key, ""});
  } else if (request.kind == OperationKind::kDelete || (request.kind == OperationKind::kRange && !written)) {
    ranges.push_back({request.key, request.range_end});
  }
}

// Keys and values are any bytes: as they are, a zero byte would end what is printed of the story there.
std::string Shorten(const std::string& bytes) {
  const std::string text = absl::CEscape(bytes);
  return text.size() <= 24 ? text : text.substr(0, 21) + "...";
}

std::string ShowRange(const std::string& key, const std::string& range_end) {
  if (range_end.empty()) return Shorten(key);
  if (range_end == kFromKey) return absl::StrFormat("[%s, ...)", Shorten(key));
  return absl::StrFormat("[%s, %s)", Shorten(key), Shorten(range_end));
}

std::string ShowCompare(const Condition& compare) {
  static constexpr std::string_view kTargets[] = {"version", "create", "mod", "value", "lease"};
  static constexpr std::string_view kResults[] = {"=", ">", "<", "!="};
  bool value = compare.target == CompareTarget::kValue;
  return absl::StrFormat("%s %s %s %s", kTargets[static_cast<size_t>(compare.target)],
                         ShowRange(compare.key, compare.range_end), kResults[static_cast<size_t>(compare.result)],
                         value ? Shorten(compare.value) : std::to_string(compare.number));
}

std::string ShowBranch(const Branch& branch) {
  if (branch.empty()) return "nothing";
  std::string text;
  for (const Request& operation : branch) {
    if (!text.empty()) text += ", ";
    bool nested = operation.kind == OperationKind::kTxn;
    text += nested ? "(" + Describe(operation) + ")" : Describe(operation);
  }
  return text;
}

std::string ShowTxn(const Request& request) {
  std::string text = "txn";
  for (const Condition& compare : request.compares) {
    text += (&compare == &request.compares.front() ? " if " : " and ") + ShowCompare(compare);
  }
  return text + ": " + ShowBranch(request.success) + (request.failure.empty() ? "" : " else " + ShowBranch(request.failure));
}

}  // namespace

std::string_view StaticError(const Request& request) {
  std::string_view error = OperationError(request, kTxnOpsMax);
  if (!error.empty() || request.kind != OperationKind::kTxn) return error;
  bool duplicate = KeysOf(request.success).duplicate || KeysOf(request.failure).duplicate;
  return duplicate ? kErrorDuplicateKey : std::string_view();
}

bool IsStaticError(std::string_view error) {
  return error == kErrorEmptyKey || error == kErrorValueProvided || error == kErrorTooManyOps ||
         error == kErrorDuplicateKey || error == kErrorSortOption || error == kErrorStreamSort ||
         error == kErrorStreamFilter;
}

bool ReadsOnly(const Request& request) {
  if (request.kind != OperationKind::kTxn) {
    return request.kind == OperationKind::kRange || request.kind == OperationKind::kHashKv;
  }
  auto is_range = [](const Request& operation) { return operation.kind == OperationKind::kRange; };
  return std::ranges::all_of(request.success, is_range) && std::ranges::all_of(request.failure, is_range);
}

bool ReadsLocally(const Request& request) {
  if (!ReadsOnly(request)) return false;
  if (request.kind == OperationKind::kHashKv) return true;
  if (request.kind == OperationKind::kRange) return request.serializable;
  return std::ranges::all_of(request.success, &Request::serializable) &&
         std::ranges::all_of(request.failure, &Request::serializable);
}

int64_t HighestAsked(const Request& request) {
  int64_t highest = request.revision;
  for (const Request& operation : request.success) highest = std::max(highest, HighestAsked(operation));
  for (const Request& operation : request.failure) highest = std::max(highest, HighestAsked(operation));
  return highest;
}

std::string EffectText(const Request& request) {
  std::string text;
  AddEffect(text, request);
  return text;
}

std::vector<KeyRange> WrittenRanges(const Request& request) {
  std::vector<KeyRange> ranges;
  CollectRanges(request, true, ranges);
  return ranges;
}

std::vector<KeyRange> ReadRanges(const Request& request) {
  std::vector<KeyRange> ranges;
  CollectRanges(request, false, ranges);
  return ranges;
}

bool Overlap(const KeyRange& a, const KeyRange& b) {
  return InRange(a.key, b.key, b.range_end) || InRange(b.key, a.key, a.range_end);
}

bool MayTouch(const Request& writer, const Request& reader) {
  std::vector<KeyRange> read = ReadRanges(reader);
  return std::ranges::any_of(WrittenRanges(writer), [&](const KeyRange& written) {
    return std::ranges::any_of(read, [&](const KeyRange& range) { return Overlap(written, range); });
  });
}

std::string Describe(const Request& request) {
  switch (request.kind) {
    case OperationKind::kPut:
      return absl::StrFormat("put %s=%s", Shorten(request.key), request.ignore_value ? "(kept)" : Shorten(request.value));
    case OperationKind::kDelete: return "delete " + ShowRange(request.key, request.range_end);
    case OperationKind::kTxn: return ShowTxn(request);
    case OperationKind::kCompact:
      return absl::StrFormat("compact %d%s", request.revision, request.physical ? " to the end" : "");
    case OperationKind::kHashKv: return absl::StrFormat("hash at revision %d", request.revision);
    case OperationKind::kRange: break;
  }
  std::string what = request.serializable ? "serializable range " : "range ";
  what += ShowRange(request.key, request.range_end);
  if (request.streamed) what = "streamed " + what;
  if (request.revision != 0) what += absl::StrFormat(" at revision %d", request.revision);
  return what;
}

std::string Describe(const ObservedKeyValue& kv) {
  return absl::StrFormat("%s=%s (create %d, mod %d, version %d)", Shorten(kv.key), Shorten(kv.value), kv.create_revision,
                         kv.mod_revision, kv.version);
}

std::string Describe(const Operation& operation) {
  return absl::StrFormat("operation %d (client %d: %s)", operation.id, operation.client, Describe(operation.request));
}

}  // namespace detcd::checker
