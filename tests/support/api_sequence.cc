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
#include "tests/support/api_requests.h"

namespace detcd::testing {
namespace {

using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::PutRequest;
using etcdserverpb::RangeRequest;
using etcdserverpb::TxnRequest;
using rpc::Method;

constexpr size_t kDescribedBytesMax = 48;
const std::string kNul(1, '\0');

// What a sequence is mostly made of.
enum class Theme : uint8_t { kMixed, kTxn, kRange, kCompaction, kStream, kBroken, kLarge };
constexpr Theme kThemes[] = {Theme::kMixed,  Theme::kMixed,      Theme::kMixed,      Theme::kTxn,        Theme::kTxn,
                             Theme::kTxn,    Theme::kTxn,        Theme::kRange,      Theme::kRange,      Theme::kRange,
                             Theme::kStream, Theme::kCompaction, Theme::kCompaction, Theme::kCompaction, Theme::kStream,
                             Theme::kBroken, Theme::kBroken,     Theme::kLarge};

class SequenceWriter {
 public:
  explicit SequenceWriter(uint64_t seed)
      : draws_(KeyedRandom(seed, "api.sequence")),
        theme_(draws_.One(kThemes)),
        key_count_(DrawKeyCount()),
        requests_(draws_, key_count_) {}

  std::vector<ApiCall> Write() {
    auto wipe = std::make_shared<DeleteRangeRequest>();
    wipe->set_key(kNul);
    wipe->set_range_end(kNul);
    Add(Method::kDeleteRange, std::move(wipe));
    // Keys by the dozen, in a transaction or two: for streams of many parts, and for sorts.
    if (key_count_ > 8 || theme_ == Theme::kRange) Fill();
    const uint64_t count = theme_ == Theme::kLarge ? draws_.Between(3, 8) : draws_.Between(8, 32);
    for (uint64_t i = 0; i < count; ++i) WriteCall();
    if (theme_ == Theme::kLarge && draws_.Chance(2)) WriteLargeStream();
    return std::move(calls_);
  }

 private:
  uint64_t DrawKeyCount() {
    const uint64_t sizes[] = {1, 3, 8, 40, 200};
    const uint64_t count = sizes[draws_.Below(theme_ == Theme::kStream ? 5 : 4)];
    return theme_ == Theme::kStream ? std::max<uint64_t>(count, 8) : count;
  }

  void Add(Method method, std::shared_ptr<const google::protobuf::Message> request) {
    calls_.push_back({.method = method, .request = std::move(request), .has_leader = draws_.Chance(8)});
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
        put.set_value(requests_.Value());
        if (theme_ == Theme::kStream && draws_.Chance(3)) put.set_value(std::string(draws_.Between(1'000, 9'000), 's'));
      }
      Add(Method::kTxn, std::move(txn));
    }
  }

  void WriteCall() {
    if (theme_ == Theme::kLarge) return WriteLarge();
    if (theme_ == Theme::kBroken && draws_.Below(2) == 0) return WriteBroken();
    const uint64_t special = draws_.Below(theme_ == Theme::kMixed ? 12 : 30);
    if (special == 0) return WriteOther();
    if (special == 1) return WriteBroken();
    const uint64_t draw = draws_.Below(10);
    switch (theme_) {
      case Theme::kTxn:
        if (draw < 6) return Make<TxnRequest>(Method::kTxn, [&](TxnRequest& txn) { requests_.Txn(txn); });
        break;
      case Theme::kRange:
        if (draw < 7) return Make<RangeRequest>(Method::kRange, [&](RangeRequest& range) { requests_.Range(range); });
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
    switch (draws_.Below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return Make<PutRequest>(Method::kPut, [&](PutRequest& put) { requests_.Put(put); });
      case 7:
      case 8:
      case 9:
        return Make<DeleteRangeRequest>(Method::kDeleteRange, [&](DeleteRangeRequest& del) { requests_.Delete(del); });
      case 10:
      case 11:
      case 12:
      case 13:
        return Make<RangeRequest>(Method::kRange, [&](RangeRequest& range) { requests_.Range(range); });
      case 14:
      case 15:
      case 16:
        return Make<TxnRequest>(Method::kTxn, [&](TxnRequest& txn) { requests_.Txn(txn); });
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

  void WriteStream() {
    Make<RangeRequest>(Method::kRangeStream, [&](RangeRequest& range) { requests_.StreamedRange(range); });
  }

  void WriteCompaction() {
    Make<etcdserverpb::CompactionRequest>(Method::kCompact, [&](etcdserverpb::CompactionRequest& compaction) {
      compaction.set_revision(draws_.Chance(3) ? kFromHead : requests_.Revision());
      compaction.set_physical(draws_.Chance(3));
    });
  }

  void WriteHash() {
    using etcdserverpb::HashKVRequest;
    Make<HashKVRequest>(Method::kHashKV, [&](HashKVRequest& hash) { hash.set_revision(requests_.Revision()); });
  }

  void WriteOther() {
    switch (draws_.Below(8)) {
      case 0:
        return Make<etcdserverpb::StatusRequest>(Method::kStatus, [](auto&) {});
      case 1:
        return Make<etcdserverpb::MemberListRequest>(Method::kMemberList,
                                                     [&](auto& list) { list.set_linearizable(draws_.Chance(2)); });
      case 2:
      case 3:
        return Make<etcdserverpb::AlarmRequest>(Method::kAlarm, [&](etcdserverpb::AlarmRequest& alarm) {
          alarm.set_memberid(draws_.One<uint64_t>({0, 1}));
          alarm.set_alarm(static_cast<etcdserverpb::AlarmType>(draws_.One<int>({0, 0, 1, 2, 3, -1})));
          // Nothing is raised, so that there is nothing to clear; ACTIVATE of NONE does nothing.
          if (draws_.Chance(4)) alarm.set_action(etcdserverpb::AlarmRequest::DEACTIVATE);
          if (alarm.alarm() == etcdserverpb::NONE && draws_.Chance(4)) {
            alarm.set_action(etcdserverpb::AlarmRequest::ACTIVATE);
          }
        });
      case 4:
        return Make<etcdserverpb::MoveLeaderRequest>(Method::kMoveLeader, [&](etcdserverpb::MoveLeaderRequest& move) {
          move.set_targetid(draws_.One<uint64_t>({0, 1, std::numeric_limits<uint64_t>::max()}));
        });
      case 5:
        return Make<grpc::health::v1::HealthListRequest>(Method::kHealthList, [](auto&) {});
      default:
        return Make<grpc::health::v1::HealthCheckRequest>(
            Method::kHealthCheck, [&](grpc::health::v1::HealthCheckRequest& check) {
              const std::string services[] = {"", "etcdserverpb.KV", "no.such", "etcdserverpb.Watch"};
              check.set_service(services[draws_.Below(std::size(services))]);
            });
    }
  }

  // Near the limits of size.
  void WriteLarge() {
    if (draws_.Chance(5)) return WriteStream();
    if (draws_.Chance(6)) {
      return Make<RangeRequest>(Method::kRange, [&](RangeRequest& range) { requests_.Range(range); });
    }
    const size_t sizes[] = {kRequestBytesMax, kRequestBytesMax, kReceiveBytesMax, 1'000'000, 500'000};
    const size_t size = sizes[draws_.Below(std::size(sizes))];
    const auto around = static_cast<size_t>(draws_.Below(80));
    if (draws_.Chance(4)) {
      return Make<TxnRequest>(Method::kTxn, [&](TxnRequest& txn) {
        for (int i = 0; i < 3; ++i) {
          PutRequest& put = *txn.add_success()->mutable_request_put();
          put.set_key("k" + std::to_string(i));
          put.set_value(std::string(size / 3 + 10 - around, 'L'));
        }
      });
    }
    Make<PutRequest>(Method::kPut, [&](PutRequest& put) {
      put.set_key(requests_.Key());
      put.set_value(std::string(size + 4 - around, 'L'));
      put.set_prev_kv(draws_.Chance(4));
    });
  }

  // More in ten pairs than a part may hold.
  void WriteLargeStream() {
    const uint64_t bytes = draws_.Between(500'000, 1'400'000);
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

  static std::string Framed(std::string_view message, char flag = 0) {
    const auto size = static_cast<uint32_t>(message.size());
    std::string frame = {flag, static_cast<char>(size >> 24), static_cast<char>(size >> 16),
                         static_cast<char>(size >> 8), static_cast<char>(size)};
    return frame.append(message);
  }

  // A well-formed request of one of three kinds, encoded.
  std::string Encoded(Method& method) {
    switch (draws_.Below(3)) {
      case 0: {
        method = Method::kPut;
        PutRequest put;
        requests_.Put(put);
        if (put.value().size() > 200) put.set_value("long");
        return put.SerializeAsString();
      }
      case 1: {
        method = Method::kDeleteRange;
        DeleteRangeRequest del;
        requests_.Delete(del);
        return del.SerializeAsString();
      }
      default: {
        method = Method::kRange;
        RangeRequest range;
        requests_.Range(range);
        range.clear_revision();
        return range.SerializeAsString();
      }
    }
  }

  void WriteBroken() {
    Method method = Method::kRange;
    std::string message = Encoded(method);
    const std::string path(rpc::Info(method).path);
    switch (draws_.Below(12)) {
      case 0:
        return WriteUnknownPath(Framed(message));
      case 1:
        return AddBroken(method, path, "");
      case 2:
        return AddBroken(method, path, Framed(message).substr(0, draws_.Between(1, 4)));
      case 3:
        return AddBroken(method, path, Framed(message + "tail").substr(0, 5 + draws_.Below(message.size() + 3)));
      case 4:
        return AddBroken(method, path, Framed(message, draws_.One<char>({1, 2, '\xff'})));
      case 5:
        return AddBroken(method, path, Framed(message) + Framed(message));
      case 6:
        return AddBroken(method, path, Framed(message).append(draws_.Between(1, 4), '\0'));
      case 7: {  // fields nobody knows, at the end
        const std::string fields[] = {std::string("\x98\x06\x01", 3), std::string("\xa2\x06\x01x", 4),
                                      std::string("\xa5\x06"
                                                  "1234",
                                                  6),
                                      std::string("\xa1\x06"
                                                  "12345678",
                                                  10),
                                      std::string("\xa3\x06\xa4\x06", 4)};
        return AddBroken(method, path, Framed(message + fields[draws_.Below(std::size(fields))]));
      }
      case 8: {  // what no parser may take
        const std::string fields[] = {
            std::string("\x00\x01", 2), std::string("\x0a\x7f", 2), std::string("\x0a", 1), std::string("\xa3\x06", 2),
            std::string("\xa4\x06", 2), std::string("\x0e\x01", 2), std::string(11, '\xff')};
        return AddBroken(method, path, Framed(message + fields[draws_.Below(std::size(fields))]));
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
    AddBroken(Method::kRange, paths[draws_.Below(std::size(paths))], std::move(body));
  }

  void Mutate(std::string& message) {
    for (uint64_t i = draws_.Between(1, 3); i > 0; --i) {
      const size_t at = draws_.Below(message.size() + 1);
      switch (draws_.Below(4)) {
        case 0:
          message.insert(at, 1, static_cast<char>(draws_.Below(256)));
          break;
        case 1:
          message.resize(at);
          break;
        case 2:
          if (at < message.size()) message.erase(at, 1);
          break;
        default:
          if (at < message.size()) message[at] = static_cast<char>(message[at] ^ (1 << draws_.Below(8)));
      }
    }
  }

  Draws draws_;
  Theme theme_;
  uint64_t key_count_;
  RequestWriter requests_;
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
