// The laws of a world: equal seeds, network faults, pauses, clocks and ends, seen by small programs over the seam.
#include "sim/sim_universe.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/seam/contract.h"

namespace detcd::sim {
namespace {

void RunFor(SimUniverse& universe, Duration span) {
  const int64_t end = universe.now() + span.nanos;
  for (int64_t next = 0; universe.queue().NextTime(next) && next <= end;) universe.Step();
  universe.queue().AdvanceTo(end);
}

struct Inbox final : MessageListener {
  void OnMessage(EndpointId, uint64_t handle) override { handles.push_back(handle); }
  std::vector<uint64_t> handles;
};

struct References final : MessageStore {
  void Retain(uint64_t) override { ++count; }
  void Release(uint64_t) override { --count; }
  int64_t count = 0;
};

// Two endpoints up, messages heard at endpoint 1.
struct MessageWorld {
  explicit MessageWorld(const LinkLaw& law, uint64_t seed = 1) : universe({.seed = seed, .endpoints = 2, .link = law}) {
    universe.Start(0);
    universe.Start(1);
    universe.messages().SetListener(1, &inbox);
    universe.messages().SetStore(&references);
  }
  void Send(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      ++references.count;
      universe.messages().Send(0, 1, i, i);
    }
    RunFor(universe, Seconds(1));
  }
  References references;
  Inbox inbox;
  SimUniverse universe;
};

const DelayLaw kWide = DelayLaw::Uniform(Micros(1), Millis(10));

TEST(SimMessagesTest, ArriveInOrderOnABenignLink) {
  MessageWorld world({.delay = kWide});
  world.Send(50);
  EXPECT_EQ(world.inbox.handles.size(), 50u);
  EXPECT_TRUE(std::is_sorted(world.inbox.handles.begin(), world.inbox.handles.end()));
  EXPECT_EQ(world.references.count, 0);
}

TEST(SimMessagesTest, CertainLossLosesAll) {
  MessageWorld world({.delay = kWide, .message_loss_permille = 1000});
  world.Send(50);
  EXPECT_TRUE(world.inbox.handles.empty());
  EXPECT_EQ(world.universe.effects().counts().effective(FaultKind::kMessageLoss), 50u);
  EXPECT_EQ(world.references.count, 0);
}

TEST(SimMessagesTest, CertainDuplicationDoublesAll) {
  MessageWorld world({.delay = kWide, .message_duplicate_permille = 1000});
  world.Send(50);
  EXPECT_EQ(world.inbox.handles.size(), 100u);
  EXPECT_EQ(world.references.count, 0);
}

TEST(SimMessagesTest, ReorderingOvertakes) {
  MessageWorld world({.delay = kWide, .message_reorder_permille = 1000});
  world.Send(50);
  EXPECT_EQ(world.inbox.handles.size(), 50u);
  EXPECT_FALSE(std::is_sorted(world.inbox.handles.begin(), world.inbox.handles.end()));
  EXPECT_GT(world.universe.effects().counts().effective(FaultKind::kMessageReorder), 0u);
}

TEST(SimMessagesTest, OneWayPartitionHoldsOneDirection) {
  MessageWorld world({.delay = kWide});
  world.universe.BlockOneWay(1, 0);
  world.Send(5);
  EXPECT_EQ(world.inbox.handles.size(), 5u);
  world.universe.BlockOneWay(0, 1);
  world.Send(5);
  EXPECT_EQ(world.inbox.handles.size(), 5u);
  world.universe.HealNetwork();
  world.Send(5);
  EXPECT_EQ(world.inbox.handles.size(), 10u);
  EXPECT_EQ(world.references.count, 0);
}

TEST(SimMessagesTest, MessagesToTheDeadAreReleased) {
  MessageWorld world({.delay = kWide});
  world.references.count += 2;
  world.universe.messages().Send(0, 1, 1, 1);
  world.universe.PauseUntil(1, world.universe.now() + Seconds(1).nanos);
  RunFor(world.universe, Millis(100));  // waits in the inbox
  world.universe.messages().Send(0, 1, 2, 2);
  world.universe.End(1);
  RunFor(world.universe, Seconds(2));
  EXPECT_TRUE(world.inbox.handles.empty());
  EXPECT_EQ(world.references.count, 0);
}

// A client at endpoint 0 connected to a server at endpoint 1.
struct StreamWorld {
  explicit StreamWorld(UniverseKnobs knobs = {}) : universe((knobs.endpoints = 2, knobs)) {
    Host& from = universe.Start(0);
    Host& to = universe.Start(1);
    acceptor = to.network().Listen({.host = EndpointHost(1), .port = 80}, server).acceptor;
    client.stream = from.network().Connect(acceptor->Local(), client);
    RunFor(universe, Millis(100));
  }
  ~StreamWorld() {
    for (EndpointId e = 0; e < 2; ++e) universe.End(e);
  }
  size_t Write(std::string_view text) {
    const Bytes bytes = Bytes::Copy(text);
    return client.stream->Write({&bytes, 1});
  }
  StreamRecorder& peer() { return *server.accepted.at(0); }

  SimUniverse universe;
  AcceptRecorder server;
  StreamRecorder client;
  std::unique_ptr<detcd::Acceptor> acceptor;
};

UniverseKnobs WholeWrites() {
  UniverseKnobs knobs;
  knobs.streams.partial_write_permille = 0;
  return knobs;
}

TEST(SimStreamsTest, ShortPartitionOnlyDelays) {
  StreamWorld world(WholeWrites());
  world.universe.Partition({0}, {1});
  world.Write("held");
  RunFor(world.universe, Seconds(5));
  EXPECT_EQ(world.peer().data, "");
  world.universe.Rejoin({0}, {1});
  RunFor(world.universe, Seconds(6));
  EXPECT_EQ(world.peer().data, "held");
  EXPECT_GT(world.universe.effects().counts().effective(FaultKind::kPartition), 0u);
}

TEST(SimStreamsTest, LongPartitionTimesTheWriterOutAndLeavesTheReaderHalfOpen) {
  StreamWorld world(WholeWrites());
  world.universe.Partition({0}, {1});
  world.Write("never");
  RunFor(world.universe, Seconds(60));
  EXPECT_EQ(world.client.closed, IoError::kTimedOut);
  EXPECT_FALSE(world.peer().closed.has_value());
  world.universe.Rejoin({0}, {1});
  const Bytes late = Bytes::Copy("late");
  world.peer().stream->Write({&late, 1});
  RunFor(world.universe, Seconds(1));
  EXPECT_EQ(world.peer().closed, IoError::kReset) << "who writes to a dead end is reset";
}

TEST(SimStreamsTest, CertainLossEndsInAReset) {
  StreamWorld world(WholeWrites());
  LinkLaw law = world.universe.links().Law(0, 1);
  law.segment_loss_permille = 1000;
  world.universe.links().SetLaw(0, 1, law);
  world.Write("lost");
  RunFor(world.universe, Seconds(60));
  EXPECT_EQ(world.client.closed, IoError::kReset);
  EXPECT_EQ(world.peer().data, "");
  EXPECT_GT(world.universe.effects().counts().effective(FaultKind::kSegmentLoss), 0u);
}

TEST(SimStreamsTest, EndedProcessResetsItsPeersAndPowerLossIsSilent) {
  StreamWorld ended;
  ended.universe.End(1);
  RunFor(ended.universe, Seconds(1));
  EXPECT_EQ(ended.client.closed, IoError::kReset);
  StreamWorld dark(WholeWrites());
  dark.universe.Crash(1);
  RunFor(dark.universe, Seconds(1));
  EXPECT_FALSE(dark.client.closed.has_value());
  dark.Write("anybody?");
  RunFor(dark.universe, Seconds(60));
  EXPECT_EQ(dark.client.closed, IoError::kTimedOut);
}

TEST(SimStreamsTest, WriterToARestartedMachineIsReset) {
  StreamWorld world(WholeWrites());
  world.universe.Crash(1);
  RunFor(world.universe, Millis(10));
  world.universe.Start(1);
  world.Write("who are you?");
  RunFor(world.universe, Seconds(1));
  EXPECT_EQ(world.client.closed, IoError::kReset);
}

TEST(SimStreamsTest, ConnectErrorsTellWhatIsWrong) {
  StreamWorld world;
  Network& network = const_cast<SimHost&>(world.universe.LastHost(0)).network();
  StreamRecorder nowhere, dark, full;
  nowhere.stream = network.Connect({.host = "10.0.9.9", .port = 1}, nowhere);
  RunFor(world.universe, Millis(1));
  EXPECT_EQ(nowhere.closed, IoError::kUnreachable);
  world.universe.Crash(1);
  dark.stream = network.Connect({.host = EndpointHost(1), .port = 80}, dark);
  RunFor(world.universe, Seconds(30));
  EXPECT_EQ(dark.closed, IoError::kTimedOut);
}

TEST(SimStreamsTest, ResetBetweenCutsBothSides) {
  StreamWorld world;
  world.universe.streams().ResetBetween(1, 0);
  RunFor(world.universe, Millis(1));
  EXPECT_EQ(world.client.closed, IoError::kReset);
  EXPECT_EQ(world.peer().closed, IoError::kReset);
}

TEST(SimStreamsTest, AConnectionCutAtOneEndIsHeardOfByWhoWritesToIt) {
  StreamWorld world(WholeWrites());
  world.universe.streams().CutAt(1, 0);
  RunFor(world.universe, Seconds(60));
  EXPECT_EQ(world.peer().closed, IoError::kReset);
  EXPECT_FALSE(world.client.closed.has_value());
  EXPECT_EQ(world.universe.effects().counts().effective(FaultKind::kHalfOpen), 1u);
  world.Write("anybody?");
  RunFor(world.universe, Seconds(1));
  EXPECT_EQ(world.client.closed, IoError::kReset);
}

TEST(SimStreamsTest, AClogHoldsBytesUntilItsEnd) {
  StreamWorld world(WholeWrites());
  LinkLaw law = world.universe.links().Law(0, 1);
  law.clogged_until = world.universe.now() + Seconds(3).nanos;
  world.universe.links().SetLaw(0, 1, law);
  world.Write("first");
  RunFor(world.universe, Millis(2'990));
  EXPECT_EQ(world.peer().data, "");
  RunFor(world.universe, Millis(20));
  EXPECT_EQ(world.peer().data, "first");
  EXPECT_FALSE(world.client.closed.has_value());
}

TEST(SimStreamsTest, AFlippedBitResetsBothEnds) {
  StreamWorld world(WholeWrites());
  LinkLaw law = world.universe.links().Law(0, 1);
  law.flip_permille = 1000;
  world.universe.links().SetLaw(0, 1, law);
  world.Write("flipped");
  RunFor(world.universe, Seconds(1));
  EXPECT_EQ(world.client.closed, IoError::kReset);
  EXPECT_EQ(world.peer().closed, IoError::kReset);
  EXPECT_EQ(world.peer().data, "");
}

TEST(SimStreamsTest, ConnectionsAreFreedWhenBothEndsAreGone) {
  StreamWorld world;
  EXPECT_EQ(world.universe.streams().connections(), 1u);
  world.client.stream.reset();
  RunFor(world.universe, Millis(10));
  world.peer().stream.reset();
  RunFor(world.universe, Seconds(1));
  EXPECT_EQ(world.universe.streams().connections(), 0u);
}

TEST(SimHostTest, PausedProcessorDrainsItsInboxLater) {
  SimUniverse universe({.endpoints = 1});
  Host& host = universe.Start(0);
  TimerRecorder recorder(host.clock());
  auto timer = host.clock().NewTimer(recorder, 1);
  timer->Arm(host.clock().Now() + Millis(10));
  universe.PauseUntil(0, Millis(500).nanos);
  RunFor(universe, Millis(499));
  EXPECT_TRUE(recorder.fired.empty());
  RunFor(universe, Millis(2));
  EXPECT_EQ(recorder.fired.size(), 1u);
  EXPECT_GT(universe.effects().counts().effective(FaultKind::kPause), 0u);
  universe.End(0);
}

TEST(SimHostTest, APauseMayEndSoonerThanWasSaid) {
  SimUniverse universe({.endpoints = 1});
  Host& host = universe.Start(0);
  TimerRecorder recorder(host.clock());
  auto timer = host.clock().NewTimer(recorder, 1);
  timer->Arm(host.clock().Now() + Millis(10));
  universe.PauseUntil(0, Millis(500).nanos);
  RunFor(universe, Millis(100));
  universe.PauseUntil(0, Millis(200).nanos);
  RunFor(universe, Millis(99));
  EXPECT_TRUE(recorder.fired.empty());
  RunFor(universe, Millis(2));
  EXPECT_EQ(recorder.fired.size(), 1u);
  universe.End(0);
}

// Notes what a paused endpoint finds when it wakes: `t` a timer, `0` and `1` messages of these endpoints, both of them
// after the timer.
struct Waking final : MessageListener, TimerListener {
  explicit Waking(uint32_t by_source_permille, uint64_t seed)
      : universe({.seed = seed, .endpoints = 3, .processor = {.by_source_permille = by_source_permille}}) {
    universe.Start(0);
    universe.Start(1);
    Host& host = universe.Start(2);
    universe.messages().SetListener(2, this);
    universe.messages().SetStore(&references);
    references.count = 6;
    const auto timer = host.clock().NewTimer(*this, 0);
    timer->Arm(host.clock().Now() + Millis(10));
    universe.PauseUntil(2, Seconds(1).nanos);
    RunFor(universe, Millis(100));
    for (uint64_t i = 0; i < 6; ++i) universe.messages().Send(i % 2 == 0 ? 0 : 1, 2, i, i);
    RunFor(universe, Seconds(2));
  }
  void OnMessage(EndpointId from, uint64_t handle) override {
    found += std::to_string(from);
    in_order &= handle % 2 != from || handle >= last[from];
    last[from] = handle;
  }
  void OnTimer(uint64_t) override { found += "t"; }
  References references;
  SimUniverse universe;
  std::string found;
  bool in_order = true;
  uint64_t last[2] = {0, 0};
};

TEST(SimHostTest, ATurnMayTakeWhatWaitsBySource) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Waking waking(1'000, seed);
    EXPECT_TRUE(waking.in_order) << waking.found;
    EXPECT_EQ(waking.found.size(), 7u);
    orders.insert({waking.found[0], waking.found[1]});
  }
  // Any source first, and mostly all of one before the next.
  for (const char* first_two : {"t0", "t1", "00", "11"}) EXPECT_TRUE(orders.contains(first_two)) << first_two;
}

TEST(SimHostTest, OtherwiseATurnTakesWhatWaitsInTheOrderOfArrival) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Waking waking(0, seed);
    EXPECT_EQ(waking.found[0], 't');
    EXPECT_EQ(waking.universe.effects().counts().effective(FaultKind::kOvertaking), 0u);
  }
}

TEST(SimHostTest, TimerFollowsAClockThatIsSetWhileArmed) {
  SimUniverse universe({.endpoints = 1});
  Host& host = universe.Start(0);
  TimerRecorder recorder(host.clock());
  auto timer = host.clock().NewTimer(recorder, 1);
  timer->Arm(host.clock().Now() + Seconds(10));
  universe.FreezeClock(0);
  RunFor(universe, Seconds(100));
  EXPECT_TRUE(recorder.fired.empty());
  universe.SetDrift(0, 1'000'000);  // twice as fast
  RunFor(universe, Seconds(4));
  EXPECT_TRUE(recorder.fired.empty());
  universe.LeapClock(0, Seconds(3));
  RunFor(universe, Millis(1));
  EXPECT_EQ(recorder.fired.size(), 1u);
  universe.End(0);
}

TEST(SimHostTest, StopOutsideAnEventEndsTheIncarnationAtItsNextEvent) {
  SimUniverse universe({.endpoints = 1});
  Host& host = universe.Start(0);
  PostRecorder posts;
  host.Stop(false, "damaged data directory");
  host.events().Post(posts, 1);
  const StepResult step = universe.Step();
  EXPECT_TRUE(step.stopped);
  EXPECT_FALSE(universe.IsUp(0));
  EXPECT_EQ(universe.LastHost(0).stop_reason(), "damaged data directory");
  EXPECT_TRUE(posts.tokens.empty());
}

// Opens w/a at endpoint 0; the file's calls are heard by `recorder`.
struct DiskWorld {
  DiskWorld() : universe({.endpoints = 1}) {
    directory = universe.Start(0).files().OpenDirectory("w", true, recorder, 1);
    file = directory->Open("a", OpenMode::kCreateNew, recorder, 2);
    const Bytes bytes = Bytes::Copy("content");
    file->WriteAt(0, {&bytes, 1}, 3);
    RunFor(universe, Millis(100));
  }
  ~DiskWorld() { universe.End(0); }
  SimUniverse universe;
  FileRecorder recorder;
  std::unique_ptr<Directory> directory;
  std::unique_ptr<File> file;
};

TEST(SimFilesTest, StalledDiskCompletesNothingUntilItIsOver) {
  DiskWorld world;
  world.universe.StallDiskUntil(0, world.universe.now() + Seconds(3).nanos);
  world.file->Sync(4);
  RunFor(world.universe, Millis(2'999));
  EXPECT_FALSE(world.recorder.Has(4));
  RunFor(world.universe, Millis(100));
  EXPECT_TRUE(world.recorder.Has(4));
  EXPECT_GT(world.universe.effects().counts().effective(FaultKind::kSyncStall), 0u);
}

TEST(SimFilesTest, PowerLossTakesWhatWasNeverSynced) {
  SimUniverse universe({.seed = 1, .endpoints = 1});
  universe.Start(0);
  SimDisk& disk = universe.disk(0);
  disk.root()->Add("file", disk.MakeFile());
  disk.root()->EntriesSynced();
  disk.Walk("file")->Write(0, "old");
  disk.Walk("file")->Synced();
  disk.Walk("file")->Write(0, "new");
  universe.Crash(0, Survival::kNothing);
  EXPECT_EQ(disk.Walk("file")->Read(0, 3).view(), "old");
}

TEST(SimFilesTest, CertainErrorsAreSaid) {
  DiskWorld world;
  world.universe.disk_knobs(0).sync_error_permille = 1000;
  world.universe.disk_knobs(0).read_error_permille = 1000;
  world.universe.disk_knobs(0).write_error_permille = 1000;
  const Bytes bytes = Bytes::Copy("x");
  world.file->Sync(4);
  world.file->ReadAt(0, 1, 5);
  world.file->WriteAt(0, {&bytes, 1}, 6);
  world.directory->Sync(7);
  RunFor(world.universe, Seconds(1));
  for (FileToken token : {4u, 5u, 6u, 7u}) EXPECT_EQ(world.recorder.results.at(token).error, IoError::kDevice);
  EXPECT_EQ(world.universe.effects().counts().effective(FaultKind::kDeviceError), 2u);
}

TEST(SimFilesTest, CorruptionFlipsOneBit) {
  DiskWorld world;
  EXPECT_TRUE(world.universe.CorruptFile(0, "w/a", 0, 0));
  EXPECT_FALSE(world.universe.CorruptFile(0, "w/a", 7, 0)) << "beyond the end";
  EXPECT_FALSE(world.universe.CorruptFile(0, "w/absent", 0, 0));
  world.file->ReadAt(0, 7, 4);
  RunFor(world.universe, Seconds(1));
  EXPECT_EQ(world.recorder.results.at(4).data.view(), "bontent");
}

TEST(SimHostTest, TraceKnowsWhichEventItFollowsFrom) {
  struct Tracer final : PostListener {
    explicit Tracer(Host& h) : host(h) {}
    void OnPost(uint64_t token) override {
      Emit(host.trace(), LogLevel::kInfo, "test/post", "heard", {TraceField::Number("token", token)});
      if (token == 1) host.events().Post(*this, 2);
    }
    Host& host;
  };
  SimUniverse universe({.endpoints = 1});
  Tracer tracer(universe.Start(0));
  universe.trace().Enable(LogLevel::kInfo, 10);
  tracer.host.events().Post(tracer, 1);
  RunFor(universe, Millis(1));
  const auto& records = universe.trace().records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].text, "test/post: heard token=2");
  EXPECT_EQ(records[1].parent, records[0].event);
  universe.End(0);
}

// A few hundred events of every kind.
uint64_t DigestOf(uint64_t seed) {
  UniverseKnobs knobs;
  knobs.seed = seed;
  StreamWorld world(knobs);
  for (int i = 0; i < 20; ++i) {
    world.Write(Pattern(1'000, seed));
    RunFor(world.universe, Millis(1));
  }
  return world.universe.digest();
}

TEST(SimUniverseTest, EqualSeedsAreEqualRunsAndOtherSeedsAreNot) {
  EXPECT_EQ(DigestOf(1), DigestOf(1));
  EXPECT_NE(DigestOf(1), DigestOf(2));
}

TEST(DelayLawTest, DrawsKeepTheirBoundsAndMeans) {
  KeyedRandom random(1, "delay");
  const DelayLaw law = {DelayShape::kExponential, Micros(10), Micros(100), Millis(100)};
  int64_t sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Duration d = DrawDelay(law, random);
    ASSERT_GE(d, Micros(10));
    ASSERT_LE(d, Millis(100));
    sum += d.nanos;
  }
  EXPECT_NEAR(static_cast<double>(sum) / 20'000, 110'000, 3'000);
  const DelayLaw bimodal = {DelayShape::kBimodal, Micros(1), Micros(10), Millis(1), 1000};
  EXPECT_GE(DrawDelay(bimodal, random), Micros(10));
}

}  // namespace
}  // namespace detcd::sim
