#include "tests/support/api_sequence.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "core/base/limits.h"
#include "core/io/random.h"
#include "core/proto/health.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/wire/grpc_format.h"

namespace detcd::testing {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::PutRequest;
using etcdserverpb::RangeRequest;
using etcdserverpb::RequestOp;
using etcdserverpb::TxnRequest;
using rpc::Method;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr size_t kDescribedBytesMax = 48;
const std::string kNul(1, '\0');

// What a sequence is mostly made of.
enum class Theme : uint8_t { kMixed, kTxn, kRange, kCompaction, kStream, kBroken, kLarge };
constexpr Theme kThemes[] = {Theme::kMixed,  Theme::kMixed,      Theme::kMixed,      Theme::kTxn,        Theme::kTxn,
                             Theme::kTxn,    Theme::kTxn,        Theme::kRange,      Theme::kRange,      Theme::kRange,
                             Theme::kStream, Theme::kCompaction, Theme::kCompaction, Theme::kCompaction, Theme::kStream,
                             Theme::kBroken, Theme::kBroken,     Theme::kLarge};

// Whether a transaction, or one inside it, deletes through an open end, which etcd's check for duplicates does not see.
bool HasOpenDelete(const TxnRequest& txn) {
  for (const auto* branch : {&txn.success(), &txn.failure()}) {
    for (const RequestOp& op : *branch) {
      if (op.has_request_delete_range() && op.request_delete_range().range_end() == kNul) return true;
      if (op.has_request_txn() && HasOpenDelete(op.request_txn())) return true;
    }
  }
  return false;
}

class SequenceWriter {
 public:
  explicit SequenceWriter(uint64_t seed) : random_(seed, "api.sequence") {
    theme_ = kThemes[random_.Below(std::size(kThemes))];
    const uint64_t sizes[] = {1, 3, 8, 40, 200};
    key_count_ = sizes[random_.Below(theme_ == Theme::kStream ? 5 : 4)];
    if (theme_ == Theme::kStream) key_count_ = std::max<uint64_t>(key_count_, 8);
  }

  std::vector<ApiCall> Write() {
    auto wipe = std::make_shared<DeleteRangeRequest>();
    wipe->set_key(kNul);
    wipe->set_range_end(kNul);
    Add(Method::kDeleteRange, std::move(wipe));
    // Keys by the dozen, in a transaction or two: for streams of many parts, and for sorts.
    if (key_count_ > 8 || theme_ == Theme::kRange) Fill();
    const uint64_t count = theme_ == Theme::kLarge ? Between(3, 8) : Between(8, 32);
    for (uint64_t i = 0; i < count; ++i) WriteCall();
    if (theme_ == Theme::kLarge && Chance(2)) WriteLargeStream();
    return std::move(calls_);
  }

 private:
  uint64_t Between(uint64_t first, uint64_t last) { return random_.Between(first, last); }
  bool Chance(uint64_t of) { return random_.Below(of) == 0; }
  template <class T, size_t N>
  T One(const T (&choices)[N]) {
    return choices[random_.Below(N)];
  }

  void Add(Method method, std::shared_ptr<const google::protobuf::Message> request) {
    calls_.push_back({.method = method, .request = std::move(request), .has_leader = Chance(8)});
  }
  void AddBroken(Method method, std::string path, std::string body) {
    calls_.push_back({.method = method, .path = std::move(path), .body = std::move(body)});
  }

  void Fill() {
    for (uint64_t key = 0; key < key_count_;) {
      auto txn = std::make_shared<TxnRequest>();
      for (uint64_t i = 0; i < kTxnOpsMax && key < key_count_; ++i) {
        PutRequest& put = *txn->add_success()->mutable_request_put();
        put.set_key(absl::StrFormat("k%02d", key++));
        put.set_value(Value());
        if (theme_ == Theme::kStream && Chance(3)) put.set_value(std::string(Between(1'000, 9'000), 's'));
      }
      Add(Method::kTxn, std::move(txn));
    }
  }

  void WriteCall() {
    if (theme_ == Theme::kLarge) return WriteLarge();
    if (theme_ == Theme::kBroken && random_.Below(2) == 0) return WriteBroken();
    const uint64_t special = random_.Below(theme_ == Theme::kMixed ? 12 : 30);
    if (special == 0) return WriteOther();
    if (special == 1) return WriteBroken();
    const uint64_t draw = random_.Below(10);
    switch (theme_) {
      case Theme::kTxn:
        if (draw < 6) return Make<TxnRequest>(Method::kTxn, [&](TxnRequest& txn) { WriteTxn(txn, 1); });
        break;
      case Theme::kRange:
        if (draw < 7) return Make<RangeRequest>(Method::kRange, [&](RangeRequest& range) { WriteRange(range); });
        break;
      case Theme::kStream:
        if (draw < 5) return WriteStream();
        break;
      case Theme::kCompaction:
        if (draw < 2) return WriteCompaction();
        if (draw < 4) return WriteHash();
        break;
      case Theme::kMixed:
      case Theme::kBroken:
      case Theme::kLarge:
        break;
    }
    switch (random_.Below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return Make<PutRequest>(Method::kPut, [&](PutRequest& put) { WritePut(put); });
      case 7:
      case 8:
      case 9:
        return Make<DeleteRangeRequest>(Method::kDeleteRange, [&](DeleteRangeRequest& del) { WriteDelete(del); });
      case 10:
      case 11:
      case 12:
      case 13:
        return Make<RangeRequest>(Method::kRange, [&](RangeRequest& range) { WriteRange(range); });
      case 14:
      case 15:
      case 16:
        return Make<TxnRequest>(Method::kTxn, [&](TxnRequest& txn) { WriteTxn(txn, 1); });
      case 17:
        return WriteStream();
      case 18:
        return WriteCompaction();
      default:
        return WriteHash();
    }
  }

  template <class Request, class Fill>
  void Make(Method method, Fill&& fill) {
    auto request = std::make_shared<Request>();
    fill(*request);
    Add(method, std::move(request));
  }

  // --- the parts of requests ---

  std::string Key() {
    if (!Chance(5)) return absl::StrFormat("k%02d", random_.Below(key_count_));
    const std::string odd[] = {"",           kNul, kNul + kNul, kNul + "a",       "a",        "a" + kNul,
                               "aa",         "b",  "\xff",      "\xff\xff",       "\xc3\xa9", "k",
                               "k00" + kNul, "k0", "l",         "registry/pods/x"};
    return odd[random_.Below(std::size(odd))];
  }

  // The end of a range that starts at `key`: none, open, or above, at or below the key.
  std::string End(const std::string& key) {
    switch (random_.Below(7)) {
      case 0:
      case 1:
        return "";
      case 2:
        return kNul;
      case 3:
        return key;
      case 4:
        return key + kNul;
      default:
        return Key();
    }
  }

  void SetRange(const auto& set_key, const auto& set_end) {
    std::string key = Chance(4) ? kNul : Key();
    std::string end = key == kNul && !Chance(4) ? kNul : End(key);
    set_key(std::move(key));
    set_end(std::move(end));
  }

  std::string Value() {
    if (Chance(30)) return std::string(Between(10'000, 300'000), 'v');
    const std::string values[] = {"", "x", "y", kNul, "\xff", "v1", "v2", std::string(100, 'z')};
    return values[random_.Below(std::size(values))];
  }

  int64_t Revision() {
    switch (random_.Below(16)) {
      case 0:
        return One<int64_t>({-1, 1, 2, 3});
      case 1:
        return One<int64_t>({kMin, kMax, -2, 1'000'000});
      case 2:
      case 3:
        return kFromCompacted + static_cast<int64_t>(random_.Below(3)) - 1;
      case 4:
      case 5:
        return kFromHead + 1 - static_cast<int64_t>(random_.Below(3));
      case 6:
      case 7:
      case 8:
        return kFromHead - static_cast<int64_t>(random_.Below(25));
      default:
        return 0;
    }
  }

  int64_t Limit() {
    const auto keys = static_cast<int64_t>(key_count_);
    switch (random_.Below(8)) {
      case 0:
        return 1;
      case 1:
        return One<int64_t>({-1, kMin, kMax});
      case 2:
        return keys;
      case 3:
        return One<int64_t>({keys - 1, keys + 1, 2, 10, 11});
      case 4:
        return static_cast<int64_t>(random_.Below(key_count_ + 1));
      default:
        return 0;
    }
  }

  void WritePut(PutRequest& put) {
    put.set_key(Key());
    if (!Chance(8)) put.set_value(Value());
    put.set_prev_kv(Chance(3));
    if (Chance(6)) put.set_ignore_value(true);
    if (put.ignore_value() && !Chance(5)) put.clear_value();
    if (Chance(8)) put.set_ignore_lease(true);
    if (Chance(15)) put.set_lease(One<int64_t>({1, -1, kMax, kMin, 7}));
  }

  void WriteDelete(DeleteRangeRequest& del) {
    if (Chance(2)) {
      del.set_key(Key());
    } else {
      SetRange([&](std::string key) { del.set_key(std::move(key)); },
               [&](std::string end) { del.set_range_end(std::move(end)); });
    }
    del.set_prev_kv(Chance(2));
  }

  void WriteRange(RangeRequest& range) {
    SetRange([&](std::string key) { range.set_key(std::move(key)); },
             [&](std::string end) { range.set_range_end(std::move(end)); });
    range.set_revision(Revision());
    range.set_limit(Limit());
    if (Chance(3)) {
      range.set_sort_order(static_cast<RangeRequest::SortOrder>(random_.Below(3)));
      range.set_sort_target(static_cast<RangeRequest::SortTarget>(random_.Below(5)));
    }
    if (Chance(40)) range.set_sort_order(static_cast<RangeRequest::SortOrder>(One<int>({3, 7, -1})));
    if (Chance(40)) range.set_sort_target(static_cast<RangeRequest::SortTarget>(One<int>({5, 100, -1})));
    range.set_serializable(Chance(4));
    range.set_keys_only(Chance(5));
    range.set_count_only(Chance(8));
    if (!Chance(4)) return;
    if (Chance(3)) range.set_min_mod_revision(Revision());
    if (Chance(3)) range.set_max_mod_revision(Revision());
    if (Chance(3)) range.set_min_create_revision(Revision());
    if (Chance(3)) range.set_max_create_revision(Revision());
  }

  void WriteStream() {
    Make<RangeRequest>(Method::kRangeStream, [&](RangeRequest& range) {
      WriteRange(range);
      if (Chance(4)) return;
      range.clear_sort_order();
      range.clear_sort_target();
      range.clear_min_mod_revision();
      range.clear_max_mod_revision();
      range.clear_min_create_revision();
      range.clear_max_create_revision();
      if (Chance(4)) range.set_sort_order(RangeRequest::ASCEND);
    });
  }

  void WriteCompare(Compare& compare) {
    compare.set_key(Key());
    if (Chance(4)) compare.set_range_end(End(compare.key()));
    compare.set_target(static_cast<Compare::CompareTarget>(random_.Below(5)));
    compare.set_result(static_cast<Compare::CompareResult>(random_.Below(4)));
    if (Chance(40)) compare.set_target(static_cast<Compare::CompareTarget>(One<int>({5, 99, -1})));
    if (Chance(40)) compare.set_result(static_cast<Compare::CompareResult>(One<int>({4, 99, -1})));
    // The union of the target, mostly; none, or another's, sometimes.
    int target = static_cast<int>(compare.target());
    if (Chance(12)) target = static_cast<int>(random_.Below(6));
    switch (target) {
      case Compare::VERSION:
        compare.set_version(Chance(10) ? -1 : static_cast<int64_t>(random_.Below(4)));
        break;
      case Compare::CREATE:
        compare.set_create_revision(Revision());
        break;
      case Compare::MOD:
        compare.set_mod_revision(Revision());
        break;
      case Compare::VALUE:
        compare.set_value(Value());
        break;
      case Compare::LEASE:
        compare.set_lease(One<int64_t>({0, 1, -1}));
        break;
      default:
        break;
    }
  }

  void WriteTxn(TxnRequest& txn, int depth) {
    for (uint64_t i = random_.Below(depth == 1 ? 3 : 2); i > 0; --i) WriteCompare(*txn.add_compare());
    const bool reads_only = Chance(6);
    for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
      for (uint64_t i = random_.Below(4); i > 0; --i) WriteOp(*branch->Add(), reads_only, depth);
    }
    if (depth > 1) return;
    if (Chance(25)) WriteManyOps(txn);
    if (Chance(40)) WriteDeep(txn);
    if (HasOpenDelete(txn)) ClearIgnores(txn);
  }

  void WriteOp(RequestOp& op, bool reads_only, int depth) {
    if (Chance(60)) return;  // an op without a request
    const uint64_t kind = random_.Below(10);
    if (reads_only || kind < 3) return WriteRange(*op.mutable_request_range());
    if (kind < 6) return WritePut(*op.mutable_request_put());
    if (kind < 8 || depth > 3) return WriteDelete(*op.mutable_request_delete_range());
    WriteTxn(*op.mutable_request_txn(), depth + 1);
  }

  // At and over the limit of operations, in each of the places that count.
  void WriteManyOps(TxnRequest& txn) {
    const uint64_t count = kTxnOpsMax + random_.Below(2);
    const uint64_t place = random_.Below(4);
    TxnRequest* target = &txn;
    if (place == 3) {  // what the outer level uses is taken off the inner one's
      target = txn.add_success()->mutable_request_txn();
    }
    while (place == 2 && static_cast<uint64_t>(txn.compare_size()) < count) {
      Compare& compare = *txn.add_compare();
      compare.set_key("k00");
      compare.set_target(Compare::VERSION);
      compare.set_result(Compare::NOT_EQUAL);
      compare.set_version(-1);
    }
    auto& branch = place == 1 ? *target->mutable_failure() : *target->mutable_success();
    const uint64_t fill = place == 3 ? count - static_cast<uint64_t>(std::min<int>(txn.success_size(), 3)) : count;
    while (place != 2 && static_cast<uint64_t>(branch.size()) < fill) {
      branch.Add()->mutable_request_range()->set_key("k00");
    }
  }

  void WriteDeep(TxnRequest& txn) {
    TxnRequest* inner = &txn;
    for (uint64_t i = One<uint64_t>({5, 20, 60, 126, 127, 128}); i > 0; --i) {
      inner = (Chance(4) ? inner->add_failure() : inner->add_success())->mutable_request_txn();
    }
    WritePut(*inner->add_success()->mutable_request_put());
  }

  static void ClearIgnores(TxnRequest& txn) {
    for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
      for (RequestOp& op : *branch) {
        if (op.has_request_txn()) ClearIgnores(*op.mutable_request_txn());
        if (!op.has_request_put()) continue;
        op.mutable_request_put()->clear_ignore_value();
        op.mutable_request_put()->clear_ignore_lease();
      }
    }
  }

  void WriteCompaction() {
    Make<etcdserverpb::CompactionRequest>(Method::kCompact, [&](etcdserverpb::CompactionRequest& compaction) {
      compaction.set_revision(Chance(3) ? kFromHead : Revision());
      compaction.set_physical(Chance(3));
    });
  }

  void WriteHash() {
    Make<etcdserverpb::HashKVRequest>(Method::kHashKV,
                                      [&](etcdserverpb::HashKVRequest& hash) { hash.set_revision(Revision()); });
  }

  void WriteOther() {
    switch (random_.Below(8)) {
      case 0:
        return Make<etcdserverpb::StatusRequest>(Method::kStatus, [](auto&) {});
      case 1:
        return Make<etcdserverpb::MemberListRequest>(Method::kMemberList,
                                                     [&](auto& list) { list.set_linearizable(Chance(2)); });
      case 2:
      case 3:
        return Make<etcdserverpb::AlarmRequest>(Method::kAlarm, [&](etcdserverpb::AlarmRequest& alarm) {
          alarm.set_memberid(One<uint64_t>({0, 1}));
          alarm.set_alarm(static_cast<etcdserverpb::AlarmType>(One<int>({0, 0, 1, 2, 3, -1})));
          // Nothing is raised, so that there is nothing to clear; ACTIVATE of NONE does nothing.
          if (Chance(4)) alarm.set_action(etcdserverpb::AlarmRequest::DEACTIVATE);
          if (alarm.alarm() == etcdserverpb::NONE && Chance(4)) alarm.set_action(etcdserverpb::AlarmRequest::ACTIVATE);
        });
      case 4:
        return Make<etcdserverpb::MoveLeaderRequest>(Method::kMoveLeader, [&](etcdserverpb::MoveLeaderRequest& move) {
          move.set_targetid(One<uint64_t>({0, 1, std::numeric_limits<uint64_t>::max()}));
        });
      case 5:
        return Make<grpc::health::v1::HealthListRequest>(Method::kHealthList, [](auto&) {});
      default:
        return Make<grpc::health::v1::HealthCheckRequest>(
            Method::kHealthCheck, [&](grpc::health::v1::HealthCheckRequest& check) {
              const std::string services[] = {"", "etcdserverpb.KV", "no.such", "etcdserverpb.Watch"};
              check.set_service(services[random_.Below(std::size(services))]);
            });
    }
  }

  // --- requests near the limits of size ---

  void WriteLarge() {
    if (Chance(5)) return WriteStream();
    if (Chance(6)) return Make<RangeRequest>(Method::kRange, [&](RangeRequest& range) { WriteRange(range); });
    const size_t sizes[] = {kRequestBytesMax, kRequestBytesMax, kReceiveBytesMax, 1'000'000, 500'000};
    const size_t size = sizes[random_.Below(std::size(sizes))];
    const auto around = static_cast<size_t>(random_.Below(80));
    if (Chance(4)) {
      return Make<TxnRequest>(Method::kTxn, [&](TxnRequest& txn) {
        for (int i = 0; i < 3; ++i) {
          PutRequest& put = *txn.add_success()->mutable_request_put();
          put.set_key("k" + std::to_string(i));
          put.set_value(std::string(size / 3 + 10 - around, 'L'));
        }
      });
    }
    Make<PutRequest>(Method::kPut, [&](PutRequest& put) {
      put.set_key(Key());
      put.set_value(std::string(size + 4 - around, 'L'));
      put.set_prev_kv(Chance(4));
    });
  }

  // More in ten pairs than a part may hold.
  void WriteLargeStream() {
    const uint64_t bytes = Between(500'000, 1'400'000);
    for (const char* key : {"k00", "k01", "k02", "k03", "k04", "k05", "k06", "k07"}) {
      Make<PutRequest>(Method::kPut, [&](PutRequest& put) {
        put.set_key(key);
        put.set_value(std::string(bytes, 'L'));
      });
    }
    Make<RangeRequest>(Method::kRangeStream, [](RangeRequest& range) {
      range.set_key(kNul);
      range.set_range_end(kNul);
    });
  }

  // --- broken calls ---

  static std::string Framed(std::string_view message, char flag = 0) {
    const auto size = static_cast<uint32_t>(message.size());
    std::string frame = {flag, static_cast<char>(size >> 24), static_cast<char>(size >> 16),
                         static_cast<char>(size >> 8), static_cast<char>(size)};
    return frame.append(message);
  }

  // A well-formed request of one of three kinds, encoded.
  std::string Encoded(Method& method) {
    switch (random_.Below(3)) {
      case 0: {
        method = Method::kPut;
        PutRequest put;
        WritePut(put);
        if (put.value().size() > 200) put.set_value("long");
        return put.SerializeAsString();
      }
      case 1: {
        method = Method::kDeleteRange;
        DeleteRangeRequest del;
        WriteDelete(del);
        return del.SerializeAsString();
      }
      default: {
        method = Method::kRange;
        RangeRequest range;
        WriteRange(range);
        range.clear_revision();
        return range.SerializeAsString();
      }
    }
  }

  void WriteBroken() {
    Method method = Method::kRange;
    std::string message = Encoded(method);
    const std::string path(rpc::Info(method).path);
    switch (random_.Below(12)) {
      case 0:
        return WriteUnknownPath(Framed(message));
      case 1:
        return AddBroken(method, path, "");
      case 2:
        return AddBroken(method, path, Framed(message).substr(0, Between(1, 4)));
      case 3:
        return AddBroken(method, path, Framed(message + "tail").substr(0, 5 + random_.Below(message.size() + 3)));
      case 4:
        return AddBroken(method, path, Framed(message, One<char>({1, 2, '\xff'})));
      case 5:
        return AddBroken(method, path, Framed(message) + Framed(message));
      case 6:
        return AddBroken(method, path, Framed(message).append(Between(1, 4), '\0'));
      case 7: {  // fields nobody knows, at the end
        const std::string fields[] = {std::string("\x98\x06\x01", 3), std::string("\xa2\x06\x01x", 4),
                                      std::string("\xa5\x06"
                                                  "1234",
                                                  6),
                                      std::string("\xa1\x06"
                                                  "12345678",
                                                  10),
                                      std::string("\xa3\x06\xa4\x06", 4)};
        return AddBroken(method, path, Framed(message + fields[random_.Below(std::size(fields))]));
      }
      case 8: {  // what no parser may take
        const std::string fields[] = {
            std::string("\x00\x01", 2), std::string("\x0a\x7f", 2), std::string("\x0a", 1), std::string("\xa3\x06", 2),
            std::string("\xa4\x06", 2), std::string("\x0e\x01", 2), std::string(11, '\xff')};
        return AddBroken(method, path, Framed(message + fields[random_.Below(std::size(fields))]));
      }
      default:
        Mutate(message);
        return AddBroken(method, path, Framed(message));
    }
  }

  void WriteUnknownPath(std::string body) {
    const std::string paths[] = {"/etcdserverpb.KV/Nothing",
                                 "/etcdserverpb.Nothing/Range",
                                 "/etcdserverpb.KV/range",
                                 "/",
                                 "/x",
                                 "//",
                                 "/etcdserverpb.KV/Range/",
                                 "/etcdserverpb.KV/",
                                 "/a/b/c",
                                 "/KV/Range",
                                 "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"};
    AddBroken(Method::kRange, paths[random_.Below(std::size(paths))], std::move(body));
  }

  void Mutate(std::string& message) {
    for (uint64_t i = Between(1, 3); i > 0; --i) {
      const size_t at = random_.Below(message.size() + 1);
      switch (random_.Below(4)) {
        case 0:
          message.insert(at, 1, static_cast<char>(random_.Below(256)));
          break;
        case 1:
          message.resize(at);
          break;
        case 2:
          if (at < message.size()) message.erase(at, 1);
          break;
        default:
          if (at < message.size()) message[at] = static_cast<char>(message[at] ^ (1 << random_.Below(8)));
      }
    }
  }

  KeyedRandom random_;
  Theme theme_;
  uint64_t key_count_;
  std::vector<ApiCall> calls_;
};

int64_t Resolved(const SeenRevisions& seen, int64_t number) {
  if (number >= kFromHead - kFromSpan && number <= kFromHead + kFromSpan) return seen.head + (number - kFromHead);
  if (number >= kFromCompacted - kFromSpan && number <= kFromCompacted + kFromSpan)
    return seen.compacted + (number - kFromCompacted);
  return number;
}

}  // namespace

void SeenRevisions::See(const google::protobuf::Message& request, const google::protobuf::Message& response) {
  const google::protobuf::FieldDescriptor* field = response.GetDescriptor()->FindFieldByName("header");
  if (field == nullptr || !response.GetReflection()->HasField(response, field)) return;
  const auto& header =
      static_cast<const etcdserverpb::ResponseHeader&>(response.GetReflection()->GetMessage(response, field));
  head = std::max(head, header.revision());
  if (request.GetDescriptor() == etcdserverpb::CompactionRequest::descriptor()) {
    compacted = static_cast<const etcdserverpb::CompactionRequest&>(request).revision();
  }
  if (request.GetDescriptor() == TxnRequest::descriptor() && HasOpenDelete(static_cast<const TxnRequest&>(request))) {
    reborn.insert(header.revision());
  }
}

std::vector<ApiCall> DrawApiSequence(uint64_t seed) { return SequenceWriter(seed).Write(); }

void ResolveRevisions(const SeenRevisions& seen, google::protobuf::Message& request) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *request.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(request, &fields);
  const bool compaction = request.GetDescriptor() == etcdserverpb::CompactionRequest::descriptor();
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 && !field->is_repeated()) {
      int64_t number = Resolved(seen, reflection.GetInt64(request, field));
      while (compaction && seen.reborn.contains(number)) ++number;
      reflection.SetInt64(&request, field, number);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(request, field); ++i) {
        ResolveRevisions(seen, *reflection.MutableRepeatedMessage(&request, field, i));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ResolveRevisions(seen, *reflection.MutableMessage(&request, field));
    }
  }
}

std::string Describe(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetTruncateStringFieldLongerThan(kDescribedBytesMax);
  std::string text;
  printer.PrintToString(message, &text);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string Describe(const ApiCall& call) {
  if (call.request != nullptr) {
    return absl::StrFormat("%s{%s}%s", rpc::Info(call.method).name, Describe(*call.request),
                           call.has_leader ? " hasleader" : "");
  }
  std::string bytes = absl::CHexEscape(call.body.substr(0, 2 * kDescribedBytesMax));
  return absl::StrFormat("%s \"%s\"%s", call.path, bytes, call.body.size() > 2 * kDescribedBytesMax ? "..." : "");
}

}  // namespace detcd::testing
