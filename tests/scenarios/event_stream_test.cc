#include "scenarios/event_stream.h"

namespace detcd::scenario {
namespace {

using ::testing::HasSubstr;

TEST(EventStreamTest, ReadsEveryKindOfLine) {
  std::string error;
  const std::optional<EventStream> stream = ParseEventStream(
      "at 1024 00000000000000ff\n"
      "event 1025 1020 ab some words\n"
      "log one\n"
      "log \n"
      "event 1026 0 0 \n"
      "end 1026 fe fine: all\n",
      error);
  ASSERT_TRUE(stream.has_value()) << error;
  EXPECT_EQ(stream->checkpoints, (std::vector<Checkpoint>{{1024, 255}}));
  ASSERT_EQ(stream->events.size(), 2u);
  EXPECT_EQ(stream->events[0], (ToldEvent{1025, 1020, 0xAB, "some words", {}}));
  EXPECT_EQ(stream->events[0].logs, (std::vector<std::string>{"one", ""}));
  EXPECT_EQ(stream->end, (StreamEnd{{1026, 254}, "fine: all"}));
}

TEST(EventStreamTest, NothingIsAStream) {
  std::string error;
  const std::optional<EventStream> stream = ParseEventStream("", error);
  ASSERT_TRUE(stream.has_value());
  EXPECT_FALSE(stream->end.has_value());
}

TEST(EventStreamTest, ALineThatWasCutIsLeftOut) {
  std::string error;
  const std::optional<EventStream> stream = ParseEventStream("at 1 1\nat 2 2", error);
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ(stream->checkpoints.size(), 1u);
}

TEST(EventStreamTest, OtherLinesAreRefusedAndNamed) {
  for (const char* line : {"", "at", "at 1", "at x 1", "at 1 xyz", "at 99999999999999999999 1", "at 1 10000000000000000",
                           "event 1 2", "event 1 -2 3 words", "log before any event", "end", "verdict: fine", "at  1 1"}) {
    std::string error;
    EXPECT_FALSE(ParseEventStream(std::string("at 1 1\n") + line + "\n", error).has_value()) << line;
    EXPECT_THAT(error, HasSubstr("line 2 is not of an event stream")) << line;
  }
}

}  // namespace
}  // namespace detcd::scenario
