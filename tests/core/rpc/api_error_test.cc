#include "core/rpc/api_error.h"

#include <set>

#include "core/rpc/utf8.h"

namespace detcd::rpc {
namespace {

TEST(ApiErrorTest, OkIsOk) {
  EXPECT_TRUE(ToCallStatus(ApiError::kOk).ok());
  EXPECT_EQ(ToCallStatus(ApiError::kOk).message, "");
}

TEST(ApiErrorTest, RowsBelongToTheirEnumerators) {
  EXPECT_EQ(ToCallStatus(ApiError::kEmptyKey),
            (CallStatus{StatusCode::kInvalidArgument, "etcdserver: key is not provided"}));
  EXPECT_EQ(ToCallStatus(ApiError::kFutureRev),
            (CallStatus{StatusCode::kOutOfRange, "etcdserver: mvcc: required revision is a future revision"}));
  EXPECT_EQ(ToCallStatus(ApiError::kTimeout), (CallStatus{StatusCode::kUnavailable, "etcdserver: request timed out"}));
  EXPECT_EQ(ToCallStatus(ApiError::kDeadlineExceeded),
            (CallStatus{StatusCode::kDeadlineExceeded, "etcdserver: context deadline exceeded"}));
  EXPECT_EQ(ToCallStatus(ApiError::kHealthServiceUnknown), (CallStatus{StatusCode::kNotFound, "unknown service"}));
}

TEST(ApiErrorTest, TwoErrorsLeaveAsUnknown) {
  EXPECT_EQ(CodeOf(ApiError::kTooManyRequests), StatusCode::kUnknown);
  EXPECT_EQ(CodeOf(ApiError::kMemberNotEnoughStarted), StatusCode::kUnknown);
}

TEST(ApiErrorTest, TextsAreDistinctAndNotEmpty) {
  std::set<std::string_view> texts;
  int rows = 0;
#define X(name, code, text, outcome) texts.insert(TextOf(ApiError::name)), ++rows;
#include "core/rpc/errors.def"
#undef X
  EXPECT_EQ(rows, 63 + 11 + 6);
  EXPECT_EQ(texts.size(), static_cast<size_t>(rows));
  EXPECT_FALSE(texts.contains(""));
}

TEST(ApiErrorTest, WaitsThatEndEarlyLeaveTheOutcomeUnknown) {
  for (ApiError error :
       {ApiError::kTimeout, ApiError::kTimeoutDueToLeaderFail, ApiError::kTimeoutDueToConnectionLost,
        ApiError::kStopped, ApiError::kCanceled, ApiError::kContextDeadlineExceeded, ApiError::kNoSpace}) {
    EXPECT_EQ(OutcomeOf(error), Outcome::kUnknown) << TextOf(error);
  }
  for (ApiError error :
       {ApiError::kEmptyKey, ApiError::kTooManyRequests, ApiError::kNoLeader, ApiError::kKeyNotFound}) {
    EXPECT_EQ(OutcomeOf(error), Outcome::kDefinite) << TextOf(error);
  }
}

TEST(Utf8Test, AcceptsWhatRfc3629Does) {
  for (const char* text : {"", "3.7", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF0\x90\x80\x80",
                           "\xF4\x8F\xBF\xBF", "a\xC3\xA4z"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* text : {"\x80", "\xC2", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "\xC2\x41"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace detcd::rpc
