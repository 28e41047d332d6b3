// Clocks, timers, posts, turns, off-loading, names, randomness, and the end of an incarnation.
#include <algorithm>

#include "tests/seam/contract.h"

namespace detcd {
namespace {

TEST_P(SeamContract, TimerFiresOnceAndNeverEarly) {
  Host& host = Boot();
  TimerRecorder recorder(host.clock());
  auto timer = host.clock().NewTimer(recorder, 7);
  const Instant deadline = host.clock().Now() + Millis(20);
  timer->Arm(deadline);
  ASSERT_TRUE(Run([&] { return !recorder.fired.empty(); }));
  Pass();
  ASSERT_EQ(recorder.fired.size(), 1u);
  EXPECT_EQ(recorder.fired[0].first, 7u);
  EXPECT_GE(recorder.fired[0].second, deadline);
}

TEST_P(SeamContract, TimersFireInOrderOfTheirDeadlines) {
  Host& host = Boot();
  TimerRecorder recorder(host.clock());
  const Instant start = host.clock().Now();
  std::vector<std::unique_ptr<Timer>> timers;
  for (uint64_t i = 0; i < 5; ++i) {
    timers.push_back(host.clock().NewTimer(recorder, i));
    timers.back()->Arm(start + Millis(50 - 10 * static_cast<int64_t>(i)));
  }
  ASSERT_TRUE(Run([&] { return recorder.fired.size() == 5; }));
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(recorder.fired[i].first, 4 - i);
}

TEST_P(SeamContract, PastDeadlineFiresAsALaterEvent) {
  Host& host = Boot();
  TimerRecorder recorder(host.clock());
  auto timer = host.clock().NewTimer(recorder, 1);
  timer->Arm(host.clock().Now() - Seconds(1));
  EXPECT_TRUE(recorder.fired.empty()) << "an event inside Arm";
  EXPECT_TRUE(Run([&] { return recorder.fired.size() == 1; }));
}

TEST_P(SeamContract, ArmReplacesTheEarlierDeadline) {
  Host& host = Boot();
  TimerRecorder recorder(host.clock());
  auto timer = host.clock().NewTimer(recorder, 1);
  const Instant start = host.clock().Now();
  timer->Arm(start + Millis(10));
  timer->Arm(start + Millis(60));
  ASSERT_TRUE(Run([&] { return !recorder.fired.empty(); }));
  EXPECT_GE(recorder.fired[0].second, start + Millis(60));
  timer->Arm(start + Seconds(1000));
  timer->Arm(host.clock().Now() + Millis(10));
  ASSERT_TRUE(Run([&] { return recorder.fired.size() == 2; }));
  Pass();
  EXPECT_EQ(recorder.fired.size(), 2u);
}

TEST_P(SeamContract, DisarmedOrDestroyedTimerIsSilent) {
  Host& host = Boot();
  TimerRecorder recorder(host.clock());
  auto disarmed = host.clock().NewTimer(recorder, 1);
  auto destroyed = host.clock().NewTimer(recorder, 2);
  auto never_armed = host.clock().NewTimer(recorder, 3);
  disarmed->Arm(host.clock().Now());  // already due: its event may be waiting
  destroyed->Arm(host.clock().Now());
  disarmed->Disarm();
  destroyed.reset();
  never_armed->Disarm();
  Pass();
  EXPECT_TRUE(recorder.fired.empty());
}

TEST_P(SeamContract, TimerDisarmedByAnEarlierEventIsSilent) {
  struct Killer final : TimerListener {
    void OnTimer(uint64_t) override {
      ++fired;
      for (auto& timer : timers) timer->Disarm();
    }
    std::vector<std::unique_ptr<Timer>> timers;
    int fired = 0;
  } killer;
  Host& host = Boot();
  const Instant due = host.clock().Now() + Millis(5);
  for (uint64_t i = 0; i < 3; ++i) {
    killer.timers.push_back(host.clock().NewTimer(killer, i));
    killer.timers.back()->Arm(due);
  }
  Pass();
  EXPECT_EQ(killer.fired, 1);
}

TEST_P(SeamContract, TimerCanBeArmedAndDestroyedInsideItsEvent) {
  struct Repeating final : TimerListener {
    explicit Repeating(Clock& c) : clock(c), timer(c.NewTimer(*this, 0)) {}
    void OnTimer(uint64_t) override {
      if (++fired < 3) {
        timer->Arm(clock.Now() + Millis(1));
      } else {
        timer.reset();
      }
    }
    Clock& clock;
    std::unique_ptr<Timer> timer;
    int fired = 0;
  };
  Host& host = Boot();
  Repeating repeating(host.clock());
  repeating.timer->Arm(host.clock().Now());
  EXPECT_TRUE(Run([&] { return repeating.fired == 3; }));
  Pass();
  EXPECT_EQ(repeating.fired, 3);
}

TEST_P(SeamContract, MonotonicTimeNeverFalls) {
  Host& host = Boot();
  Instant last = host.clock().Now();
  for (int i = 0; i < 20; ++i) {
    Pass(Millis(1));
    const Instant now = host.clock().Now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(host.clock().Wall().nanos, 0);
}

TEST_P(SeamContract, PostsArriveInOrderAndNeverInsideTheCall) {
  Host& host = Boot();
  PostRecorder first;
  PostRecorder second;
  for (uint64_t i = 0; i < 100; ++i) host.events().Post(first, i);
  host.events().Post(second, 5);
  EXPECT_TRUE(first.tokens.empty());
  ASSERT_TRUE(Run([&] { return !second.tokens.empty(); }));
  ASSERT_EQ(first.tokens.size(), 100u);
  EXPECT_TRUE(std::is_sorted(first.tokens.begin(), first.tokens.end()));
}

// Writes what it hears as text: p for a post, E for the end of a turn.
struct TurnLog final : PostListener, TurnListener {
  explicit TurnLog(Events& e) : events(e) {}
  void OnPost(uint64_t token) override {
    log += static_cast<char>('0' + token);
    if (token == 1) events.Post(*this, 2);
    EXPECT_EQ(log.back(), static_cast<char>('0' + token)) << "an event inside Post";
  }
  void OnEndTurn() override {
    log += 'E';
    if (repost) events.Post(*this, 3);
    repost = false;
  }
  Events& events;
  std::string log;
  bool repost = false;
};

TEST_P(SeamContract, EveryTurnEndsAndAPostAtItsEndBelongsToALaterTurn) {
  Host& host = BootBare();
  TurnLog log(host.events());
  host.events().SetTurnListener(log);
  log.repost = true;
  host.events().Post(log, 1);
  ASSERT_TRUE(Run([&] { return log.log.find('3') != std::string::npos && log.log.back() == 'E'; }));
  Pass();
  const size_t end = log.log.find('E');
  EXPECT_NE(end, 0u) << "a turn has at least one event: " << log.log;
  EXPECT_GT(log.log.find('3'), end) << log.log;
  EXPECT_EQ(log.log.find("EE"), std::string::npos) << "a turn without events: " << log.log;
  EXPECT_LT(log.log.find('1'), log.log.find('2')) << log.log;
}

Bytes Reverse(std::string_view input) { return Bytes::Copy(std::string(input.rbegin(), input.rend())); }

TEST_P(SeamContract, OffloadedResultsAreEvents) {
  Host& host = Boot();
  OffloadRecorder recorder;
  host.offloader().Run(&Reverse, Bytes::Copy("abc"), recorder, 1);
  host.offloader().Run(&Reverse, Bytes(), recorder, 2);
  EXPECT_TRUE(recorder.results.empty());
  ASSERT_TRUE(Run([&] { return recorder.results.size() == 2; }));
  EXPECT_EQ(recorder.results.at(1).view(), "cba");
  EXPECT_EQ(recorder.results.at(2).view(), "");
}

TEST_P(SeamContract, NumericNamesAndLocalhostResolve) {
  Host& host = Boot();
  ResolveRecorder recorder;
  host.network().Resolve("127.0.0.1", 2379, recorder, 1);
  host.network().Resolve("::1", 2380, recorder, 2);
  host.network().Resolve("localhost", 80, recorder, 3);
  EXPECT_TRUE(recorder.results.empty());
  ASSERT_TRUE(Run([&] { return recorder.results.size() == 3; }));
  EXPECT_EQ(recorder.results.at(1), (std::vector<Address>{{"127.0.0.1", 2379}}));
  EXPECT_EQ(recorder.results.at(2), (std::vector<Address>{{"::1", 2380}}));
  EXPECT_EQ(recorder.errors.at(3), IoError::kOk);
  ASSERT_FALSE(recorder.results.at(3).empty());
  for (const Address& address : recorder.results.at(3)) {
    EXPECT_TRUE(address.host == "127.0.0.1" || address.host == "::1") << address.host;
    EXPECT_EQ(address.port, 80);
  }
}

TEST_P(SeamContract, RandomStreamsAreNamed) {
  Host* host = &Boot();
  const uint64_t raft = host->Random("raft").Next();
  EXPECT_EQ(host->Random("raft").Next(), raft);
  EXPECT_NE(host->Random("lease").Next(), raft);
  EXPECT_NE(Boot(1).Random("raft").Next(), raft);
  std::vector<uint8_t> first(16), second(16);
  host->FillSecure(first);
  host->FillSecure(second);
  EXPECT_NE(first, second);
  world_->End(0);
  EXPECT_NE(Boot().Random("raft").Next(), raft);
}

// One of everything pending on host 0, heard by recorders that outlive the incarnation.
struct Everything {
  explicit Everything(Host& host, const Address& listen, const Address& elsewhere) : timers(host.clock()) {
    timer = host.clock().NewTimer(timers, 1);
    directory = host.files().OpenDirectory("end", true, files, 1);
    file = directory->Open("file", OpenMode::kCreate, files, 2);
    const Bytes data = Bytes::Copy("pending");
    file->WriteAt(0, {&data, 1}, 3);
    file->Sync(4);
    directory->Sync(5);
    acceptor = host.network().Listen(listen, accepts).acceptor;
    client.stream = host.network().Connect(listen, client);
    refused.stream = host.network().Connect(elsewhere, refused);
    host.network().Resolve("localhost", 1, names, 1);
    host.offloader().Run(&Reverse, data, offloads, 1);
    host.events().Post(posts, 1);
    timer->Arm(host.clock().Now() + Millis(1));
  }
  uint64_t Heard() const {
    return timers.fired.size() + files.order.size() + accepts.events + client.events + refused.events +
           names.results.size() + offloads.results.size() + posts.tokens.size();
  }

  TimerRecorder timers;
  FileRecorder files;
  AcceptRecorder accepts;
  StreamRecorder client, refused;
  ResolveRecorder names;
  OffloadRecorder offloads;
  PostRecorder posts;
  std::unique_ptr<Timer> timer;
  std::unique_ptr<Directory> directory;
  std::unique_ptr<File> file;
  std::unique_ptr<Acceptor> acceptor;
};

TEST_P(SeamContract, EndDropsEverythingPending) {
  const Address listen = world_->NewAddress(0);
  const Address elsewhere = world_->NewAddress(0);
  auto everything = std::make_unique<Everything>(Boot(), listen, elsewhere);
  EXPECT_EQ(everything->Heard(), 0u) << "a completion inside a call";
  world_->End(0);
  const uint64_t turns = turns_[0].turns;
  Pass();
  EXPECT_EQ(everything->Heard(), 0u);
  EXPECT_EQ(turns_[0].turns, turns);
  everything.reset();
  Pass();
}

TEST_P(SeamContract, EndInTheMiddleThenANewIncarnationWorks) {
  const Address listen = world_->NewAddress(0);
  const Address elsewhere = world_->NewAddress(0);
  for (uint64_t heard_before_end : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{6}, uint64_t{9}}) {
    auto everything = std::make_unique<Everything>(Boot(), listen, elsewhere);
    ASSERT_NE(everything->acceptor, nullptr);
    ASSERT_TRUE(Run([&] { return everything->Heard() >= heard_before_end; }));
    world_->End(0);
    const uint64_t heard = everything->Heard();
    Pass(Millis(5));
    EXPECT_EQ(everything->Heard(), heard);
    everything.reset();
  }
  Everything everything(Boot(), listen, elsewhere);
  EXPECT_TRUE(Run([&] {
    return everything.timers.fired.size() == 1 && everything.files.order.size() == 5 && everything.client.connected &&
           everything.accepts.accepted.size() == 1 && everything.refused.closed && everything.names.results.size() == 1 &&
           everything.offloads.results.size() == 1 && everything.posts.tokens.size() == 1;
  }));
}

TEST_P(SeamContract, StopEndsTheIncarnationAfterTheCurrentEvent) {
  struct Stopper final : PostListener {
    explicit Stopper(Host& h) : host(h) {}
    void OnPost(uint64_t) override {
      if (++heard == 1) host.Stop(true, "asked to");
    }
    Host& host;
    int heard = 0;
  };
  Host& host = Boot();
  Stopper stopper(host);
  for (uint64_t i = 0; i < 3; ++i) host.events().Post(stopper, i);
  Pass();
  EXPECT_EQ(stopper.heard, 1);
  world_->End(0);
  Host& next = Boot();
  PostRecorder posts;
  next.events().Post(posts, 1);
  EXPECT_TRUE(Run([&] { return posts.tokens.size() == 1; }));
}

}  // namespace
}  // namespace detcd
