#include "tests/interop/differential/story.h"

#include <google/protobuf/message.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace detcd::differential {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::ApiCall;

constexpr int kTriesMax = 400;  // replays of one shrink

// Takes the part numbered `index` (fields and elements, in order, outer ones first) out of `message`. What is left of
// the number when there are not so many; -1 when it was done.
int RemovePart(Message& message, int index) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (index-- == 0) {
        if (!field->is_repeated()) {
          reflection.ClearField(&message, field);
        } else {
          for (int j = i; j + 1 < count; ++j) reflection.SwapElements(&message, field, j, j + 1);
          reflection.RemoveLast(&message, field);
        }
        return -1;
      }
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      index = RemovePart(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                              : *reflection.MutableMessage(&message, field),
                         index);
      if (index < 0) return -1;
    }
  }
  return index;
}

}  // namespace

std::optional<Story> Shrink(std::vector<ApiCall> calls, const Replay& replay) {
  std::optional<Difference> difference = replay(calls);
  if (!difference.has_value()) return std::nullopt;
  calls.resize(difference->index + 1);
  Story story{std::move(calls), *std::move(difference)};
  int tries = 0;
  auto keep = [&](std::vector<ApiCall> smaller) {
    if (++tries > kTriesMax) return false;
    std::optional<Difference> again = replay(smaller);
    if (!again.has_value()) return false;
    smaller.resize(again->index + 1);
    story = Story{std::move(smaller), *std::move(again)};
    return true;
  };
  // Halves, quarters, ... single calls, but not the last.
  for (size_t span = story.calls.size() / 2; span > 0; span /= 2) {
    for (size_t at = 0; at + span < story.calls.size();) {
      std::vector<ApiCall> smaller = story.calls;
      const auto begin = smaller.begin() + static_cast<std::ptrdiff_t>(at);
      smaller.erase(begin, begin + static_cast<std::ptrdiff_t>(span));
      if (!keep(std::move(smaller))) at += span;
    }
  }
  for (size_t at = story.calls.size(); at-- > 0;) {
    for (int part = 0; at < story.calls.size() && story.calls[at].request != nullptr;) {
      std::shared_ptr<Message> request(story.calls[at].request->New());
      request->CopyFrom(*story.calls[at].request);
      if (RemovePart(*request, part) >= 0) break;
      std::vector<ApiCall> smaller = story.calls;
      smaller[at].request = std::move(request);
      if (!keep(std::move(smaller))) ++part;
    }
  }
  return story;
}

std::string Tell(const std::vector<ApiCall>& calls, const Difference& difference) {
  constexpr size_t kCallBytesMax = 1'500;
  std::string text;
  for (size_t i = 0; i < calls.size(); ++i) {
    std::string call = testing::Describe(i + 1 == calls.size() ? difference.call : calls[i]);
    if (call.size() > kCallBytesMax) call = call.substr(0, kCallBytesMax) + "...";
    text += absl::StrFormat("  %2d %s\n", i + 1, call);
  }
  auto tell = [&](const char* name, const Answer& answer) {
    text += absl::StrFormat("  %-6s %s\n", name, absl::StrReplaceAll(BriefText(answer), {{"\n", "\n         "}}));
  };
  tell("etcd", difference.etcd);
  tell("detcd", difference.detcd);
  return text;
}

}  // namespace detcd::differential
