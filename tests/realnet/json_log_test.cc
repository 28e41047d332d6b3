#include "realnet/json_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace detcd::realnet {
namespace {

std::string Json(std::string_view text) {
  std::string out;
  AppendJsonText(out, text);
  return out;
}

TEST(JsonLogTest, LinesHaveZapsShape) {
  const TraceField fields[] = {TraceField::Number("term", 18446744073709551615u), TraceField::Id("member-id", 0xabcu),
                               TraceField::Text("name", "infra\"1")};
  std::string out;
  AppendJsonLine(out, {LogLevel::kWarn, "raft/election", "hello", fields, 3}, {1'700'000'000'123'456'789}, 0);
  EXPECT_EQ(out,
            "{\"level\":\"warn\",\"ts\":\"2023-11-14T22:13:20.123456Z\",\"caller\":\"raft/election\",\"msg\":\"hello\","
            "\"term\":18446744073709551615,\"member-id\":\"abc\",\"name\":\"infra\\\"1\"}");
}

TEST(JsonLogTest, OtherZonesAreWrittenAsAnOffset) {
  std::string out;
  AppendJsonLine(out, {LogLevel::kInfo, "a", "b", nullptr, 0}, {0}, -(5 * 3600 + 30 * 60));
  EXPECT_THAT(out, ::testing::HasSubstr("\"ts\":\"1969-12-31T18:30:00.000000-0530\""));
}

TEST(JsonLogTest, TextIsEscaped) {
  EXPECT_EQ(Json("a\"b\\c\n\r\t\x01\x1f\x7f"), "a\\\"b\\\\c\\n\\r\\t\\u0001\\u001f\x7f");
  EXPECT_EQ(Json(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(Json("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(JsonLogTest, BytesThatAreNotUtf8AreReplacedOneByOne) {
  EXPECT_EQ(Json("\xff"), "\\ufffd");
  EXPECT_EQ(Json("\xc3"), "\\ufffd");                       // cut short
  EXPECT_EQ(Json("\xc0\x80"), "\\ufffd\\ufffd");             // overlong
  EXPECT_EQ(Json("\xe0\x9f\xbf"), "\\ufffd\\ufffd\\ufffd");  // overlong
  EXPECT_EQ(Json("\xed\xa0\x80"), "\\ufffd\\ufffd\\ufffd");  // surrogate
  EXPECT_EQ(Json("\xf4\x90\x80\x80"), "\\ufffd\\ufffd\\ufffd\\ufffd");
  EXPECT_EQ(Json("\x80x"), "\\ufffdx");
}

TEST(JsonLogTest, LowerLevelsAreFiltered) {
  JsonLog log(2, LogLevel::kWarn);
  EXPECT_FALSE(log.Wants(LogLevel::kInfo));
  EXPECT_TRUE(log.Wants(LogLevel::kWarn));
  EXPECT_TRUE(log.Wants(LogLevel::kFatal));
}

std::string ReadAvailable(int descriptor) {
  std::string result;
  char buffer[65'536];
  ssize_t size = 0;
  while ((size = ::read(descriptor, buffer, sizeof(buffer))) > 0) result.append(buffer, static_cast<size_t>(size));
  return result;
}

// Both kinds of log reader that may stall; ends[1] is the log's.
class StalledReaderTest : public ::testing::TestWithParam<bool> {
 protected:
  StalledReaderTest() {
    const int made = GetParam() ? ::pipe(ends_) : ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_);
    EXPECT_EQ(made, 0);
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~StalledReaderTest() override {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int ends_[2];
};

TEST_P(StalledReaderTest, LinesAreDroppedAndCountedAndNoneIsTorn) {
  JsonLog log(ends_[1], LogLevel::kInfo);
  const std::string text(30'001, 'x');  // longer than a pipe takes whole
  for (int i = 0; i < 100; ++i) log.Emit({LogLevel::kInfo, "a/b", text, nullptr, 0});
  EXPECT_GT(log.dropped(), 0u);
  std::string read = ReadAvailable(ends_[0]);
  log.Emit({LogLevel::kInfo, "a/b", "last", nullptr, 0});
  EXPECT_EQ(log.dropped(), 0u);
  read += ReadAvailable(ends_[0]);
  size_t lines = 0;
  for (size_t begin = 0; begin < read.size();) {
    const size_t end = read.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    const std::string line = read.substr(begin, end - begin);
    EXPECT_THAT(line, ::testing::StartsWith("{\"level\":\""));
    EXPECT_EQ(line.find("{\"level\"", 1), std::string::npos) << "two lines in one";
    EXPECT_EQ(line.back(), '}');
    begin = end + 1;
    ++lines;
  }
  EXPECT_GT(lines, 2u);
  EXPECT_THAT(read, ::testing::HasSubstr("log lines were dropped"));
  EXPECT_EQ(::fcntl(ends_[1], F_GETFL) & O_NONBLOCK, 0) << "the shared descriptor was changed";
}

TEST_P(StalledReaderTest, ReaderThatWentAwayIsSurvived) {
  ::signal(SIGPIPE, SIG_IGN);  // as RealHost does
  JsonLog log(ends_[1], LogLevel::kInfo);
  ::close(ends_[0]);
  ends_[0] = -1;
  log.Emit({LogLevel::kInfo, "a/b", "nobody hears", nullptr, 0});
  EXPECT_EQ(log.dropped(), 1u);
}

INSTANTIATE_TEST_SUITE_P(PipeAndSocket, StalledReaderTest, ::testing::Bool());

}  // namespace
}  // namespace detcd::realnet
