#include "realnet/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "realnet/options.h"

namespace detcd::realnet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ParseCase {
  std::vector<std::string> words;
  FlagValues values;  // expected, unless `error` is
  std::string error;
};

TEST(FlagsTest, TakesTheFormsOfGosFlagPackage) {
  const ParseCase cases[] = {
      {{}, {}, ""},
      {{"-name", "a"}, {{"name", "a"}}, ""},
      {{"--name", "a"}, {{"name", "a"}}, ""},
      {{"-name=a"}, {{"name", "a"}}, ""},
      {{"--name=a=b"}, {{"name", "a=b"}}, ""},
      {{"--name="}, {{"name", ""}}, ""},
      {{"--name", "-x"}, {{"name", "-x"}}, ""},
      {{"--name", "a", "--name", "b"}, {{"name", "b"}}, ""},
      {{"--pre-vote"}, {{"pre-vote", "true"}}, ""},
      {{"--pre-vote=F"}, {{"pre-vote", "F"}}, ""},
      {{"--heartbeat-interval", "0x10"}, {{"heartbeat-interval", "0x10"}}, ""},
      {{"--cluster-active-size=9"}, {{"cluster-active-size", "9"}}, ""},
      {{"--corrupt-check-time", "1h2m"}, {{"corrupt-check-time", "1h2m"}}, ""},
      {{"--nmae", "a"}, {}, "flag provided but not defined: -nmae"},
      {{"--experimental-initial-corrupt-check"},
       {},
       "flag provided but not defined: -experimental-initial-corrupt-check"},
      {{"--name"}, {}, "flag needs an argument: -name"},
      {{"---name"}, {}, "bad flag syntax: ---name"},
      {{"--=a"}, {}, "bad flag syntax: --=a"},
      {{"--heartbeat-interval", "ten"}, {}, "invalid value \"ten\" for flag -heartbeat-interval: parse error"},
      {{"--heartbeat-interval", "-1"}, {}, "invalid value \"-1\" for flag -heartbeat-interval: parse error"},
      {{"--heartbeat-interval="}, {}, "invalid value \"\" for flag -heartbeat-interval: parse error"},
      {{"--heartbeat-interval=18446744073709551616"},
       {},
       "invalid value \"18446744073709551616\" for flag -heartbeat-interval: parse error"},
      {{"--corrupt-check-time", "5"}, {}, "invalid value \"5\" for flag -corrupt-check-time: parse error"},
      {{"--pre-vote=maybe"}, {}, "invalid boolean value \"maybe\" for -pre-vote: parse error"},
      {{"--initial-cluster-state", "old"}, {}, "invalid value \"old\" for flag -initial-cluster-state: invalid value"},
      {{"--listen-client-urls", "http://127.0.0.1:1/x"},
       {},
       "invalid value \"http://127.0.0.1:1/x\" for flag -listen-client-urls: URL must not contain a path: "
       "http://127.0.0.1:1/x"},
      {{"--listen-client-urls", "http://127.0.0.1:1,ftp://a:1"},
       {},
       "invalid value \"http://127.0.0.1:1,ftp://a:1\" for flag -listen-client-urls: URL scheme must be http, https, "
       "unix, or "
       "unixs: ftp://a:1"},
      {{"--listen-peer-urls", ""},
       {},
       "invalid value \"\" for flag -listen-peer-urls: URL scheme must be http, https, unix, or unixs: "},
  };
  for (const ParseCase& expected : cases) {
    std::string error;
    const std::optional<CommandLine> line = ParseCommandLine(expected.words, error);
    const std::string name = expected.words.empty() ? "" : expected.words.front();
    EXPECT_EQ(error, expected.error) << name;
    ASSERT_EQ(line.has_value(), expected.error.empty()) << name;
    if (!line) continue;
    EXPECT_EQ(line->values, expected.values) << name;
  }
}

TEST(FlagsTest, StopsAtTheFirstWordThatIsNoFlag) {
  std::string error;
  const std::vector<std::string> words = {"--pre-vote", "false", "--name", "a"};
  const std::optional<CommandLine> line = ParseCommandLine(words, error);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->values, (FlagValues{{"pre-vote", "true"}}));
  EXPECT_THAT(line->extra, ElementsAre("false", "--name", "a"));
  EXPECT_EQ(MakeOptions(line->values, line->extra).status().message(), "\"false\" is not a valid flag");
}

TEST(FlagsTest, HelpHasOneOrTwoDashes) {
  for (const char* word : {"-h", "--h", "-help", "--help"}) {
    std::string error;
    const std::vector<std::string> words = {word};
    const std::optional<CommandLine> line = ParseCommandLine(words, error);
    ASSERT_TRUE(line) << word;
    EXPECT_TRUE(line->help) << word;
  }
}

TEST(FlagsTest, EveryFlagIsThereOnce) {
  EXPECT_EQ(FlagTable().size(), 113u + 15u + 1u);  // flags that do something in etcd, that it ignores, and ours
  for (const FlagRow& row : FlagTable()) EXPECT_EQ(FindFlag(row.name), &row) << row.name;
}

TEST(FlagsTest, TheEnvironmentSetsWhatTheCommandLineDoesNot) {
  FlagValues values = {{"name", "a"}};
  std::vector<std::string> warnings;
  std::string error;
  const std::vector<std::string> environment = {"PATH=/bin",         "ETCD_HEARTBEAT_INTERVAL=50", "ETCD_WRONG=1",
                                                "ETCD_VERSION=true", "ETCD_UNSUPPORTED_ARCH=arm",  "ETCD_DATA_DIR="};
  ASSERT_TRUE(AddEnvironment(environment, values, warnings, error)) << error;
  EXPECT_EQ(values, (FlagValues{{"name", "a"}, {"heartbeat-interval", "50"}}));
  EXPECT_THAT(warnings, ElementsAre("ETCD_WRONG", "ETCD_VERSION"));
}

TEST(FlagsTest, BadVariablesAreNamed) {
  FlagValues values = {{"name", "a"}};
  std::vector<std::string> warnings;
  std::string error;
  const std::vector<std::string> twice = {"ETCD_NAME=b"};
  EXPECT_FALSE(AddEnvironment(twice, values, warnings, error));
  EXPECT_THAT(error, HasSubstr("shadowed by corresponding command-line flag"));
  EXPECT_THAT(error, HasSubstr("ETCD_NAME"));
  const std::vector<std::string> wrong = {"ETCD_HEARTBEAT_INTERVAL=x"};
  EXPECT_FALSE(AddEnvironment(wrong, values, warnings, error));
  EXPECT_EQ(error, "invalid value \"x\" for ETCD_HEARTBEAT_INTERVAL: parse error");
}

struct OptionsCase {
  FlagValues values;
  std::string error;  // a part of it
};

TEST(OptionsTest, ImpossibleFlagsAreRefusedInEtcdsWords) {
  const OptionsCase cases[] = {
      {{{"election-timeout", "499"}},
       "--election-timeout[499ms] should be at least as 5 times as --heartbeat-interval[100ms]"},
      {{{"election-timeout", "50001"}}, "--election-timeout[50001ms] is too long, and should be set less than 50000ms"},
      {{{"heartbeat-interval", "0"}}, "--heartbeat-interval must be >0 (set to 0ms)"},
      {{{"election-timeout", "0"}}, "--election-timeout must be >0 (set to 0ms)"},
      {{{"listen-client-urls", "http://db.example:2379"}, {"advertise-client-urls", "http://db.example:2379"}},
       "expected IP in URL for binding (http://db.example:2379)"},
      {{{"listen-client-urls", "http://127.0.0.1:2379"}},
       "--advertise-client-urls is required when --listen-client-urls is set explicitly"},
      {{{"logger", "capnslog"}}, "unknown logger option \"capnslog\""},
      {{{"log-outputs", "default,stderr"}}, "multi logoutput for \"default\" is not supported yet"},
      {{{"log-outputs", "/tmp/x"}}, "--log-outputs=/tmp/x is not built"},
      {{{"log-format", "xml"}}, "unknown log format: xml, supported values json, console"},
      {{{"quota-backend-bytes", "1"}}, "--quota-backend-bytes is a flag of etcd that is not built"},
      {{{"auto-tls", "true"}}, "--auto-tls is a flag of etcd that is not built"},
  };
  for (const OptionsCase& expected : cases) {
    const absl::StatusOr<Options> options = MakeOptions(expected.values, {});
    ASSERT_FALSE(options.ok()) << expected.error;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(expected.error));
  }
}

TEST(OptionsTest, TheLimitsThemselvesAreFine) {
  EXPECT_TRUE(MakeOptions({{"election-timeout", "500"}}, {}).ok());
  EXPECT_TRUE(MakeOptions({{"election-timeout", "50000"}}, {}).ok());
}

TEST(OptionsTest, AFlagThatIsNotBuiltMayAskForItsDefault) {
  const absl::StatusOr<Options> options =
      MakeOptions({{"auto-tls", "F"}, {"quota-backend-bytes", "0"}, {"snapshot-count", "10000"}}, {});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->no_effect, IsEmpty());
}

TEST(OptionsTest, TheElectionTimeoutIsWholeHeartbeats) {
  const absl::StatusOr<Options> options =
      MakeOptions({{"heartbeat-interval", "150"}, {"election-timeout", "1000"}}, {});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->election_timeout, Millis(900));
}

TEST(OptionsTest, FlagsWithoutEffectAreListed) {
  const absl::StatusOr<Options> options =
      MakeOptions({{"snapshot-count", "10"}, {"initial-election-tick-advance", "false"}, {"logger", "zap"}}, {});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->no_effect, ElementsAre("initial-election-tick-advance", "snapshot-count"));
}

TEST(OptionsTest, ANameAloneMakesTheInitialCluster) {
  const absl::StatusOr<Options> options = MakeOptions({{"name", "m1"}}, {});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->initial_cluster, "m1=http://localhost:2380");
  EXPECT_EQ(options->data_dir, "m1.etcd");
}

struct StartCase {
  FlagValues values;
  std::string error;  // a part of it; empty: fine
};

TEST(OptionsTest, ImpossibleClustersAreRefusedInEtcdsWords) {
  const std::string url1 = "http://127.0.0.1:1";
  const StartCase cases[] = {
      {{{"name", "a"}, {"initial-cluster", "b=" + url1}},
       "couldn't find local name \"a\" in the initial cluster configuration"},
      {{{"initial-cluster", "default=" + url1 + ",b=" + url1}}, "has duplicate url"},
      {{{"initial-cluster", "default=" + url1}},
       "--initial-cluster has default=http://127.0.0.1:1 but missing from "
       "--initial-advertise-peer-urls=http://localhost:2380 (resolved urls: \"http://127.0.0.1:2380\" != "
       "\"http://127.0.0.1:1\")"},
      {{{"initial-cluster", "default"}}, "is not NAME=URL"},
      {{{"initial-cluster", ""}}, "is not NAME=URL"},
      {{{"initial-cluster", "default=http://a"}}, "does not have the form \"host:port\""},
      {{{"initial-cluster-state", "existing"}}, "--initial-cluster-state=existing"},
      {{{"listen-peer-urls", "https://127.0.0.1:1"}},
       "--listen-peer-urls has https://127.0.0.1:1, and TLS is not built"},
      {{{"initial-cluster", "default=" + url1}, {"initial-advertise-peer-urls", url1}}, ""},
      {{{"initial-cluster", "default=http://localhost:1"}, {"initial-advertise-peer-urls", url1}}, ""},
  };
  for (const StartCase& expected : cases) {
    const absl::StatusOr<Options> options = MakeOptions(expected.values, {});
    ASSERT_TRUE(options.ok()) << options.status();
    const absl::StatusOr<member::ServerOptions> server = MakeServerOptions(*options, false, 1'000);
    EXPECT_EQ(server.ok(), expected.error.empty()) << expected.error << server.status();
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(expected.error));
  }
}

TEST(OptionsTest, ALogMakesTheInitialClusterMeaningless) {
  const absl::StatusOr<Options> options =
      MakeOptions({{"initial-cluster", "nonsense"}, {"initial-cluster-state", "existing"}}, {});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(MakeServerOptions(*options, true, 1'000).ok());
}

TEST(OptionsTest, DurationsAreReadAsByGo) {
  const std::pair<std::string_view, Duration> good[] = {{"0", {}},
                                                        {"-0", {}},
                                                        {"5s", Seconds(5)},
                                                        {"2h0m0s", Seconds(7'200)},
                                                        {"1.5h", Seconds(5'400)},
                                                        {".5ms", Micros(500)},
                                                        {"1.s", Seconds(1)},
                                                        {"-3m", Seconds(-180)},
                                                        {"+1ns", Nanos(1)},
                                                        {"1\u00b5s", Micros(1)},
                                                        {"0.3333333333333333333h", Nanos(1'199'999'999'999)},
                                                        {"2562047h47m16.854775807s", Nanos(9'223'372'036'854'775'807)}};
  for (const auto& [text, duration] : good) EXPECT_EQ(ParseDuration(text), duration) << text;
  for (const std::string_view text :
       {"", "-", "5", "s", "5x", ".s", "1..5s", "1s5", "2562047h47m16.854775808s", "99999999999999999999s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(OptionsTest, ClientConnectionsFollowTheirFlags) {
  const absl::StatusOr<Options> options = MakeOptions({{"max-concurrent-streams", "7"},
                                                       {"grpc-keepalive-min-time", "1s"},
                                                       {"grpc-keepalive-interval", "1m"},
                                                       {"grpc-keepalive-timeout", "500ms"}},
                                                      {});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->grpc.streams_max, 7u);
  EXPECT_EQ(options->grpc.ping_interval_min, Seconds(1));
  EXPECT_EQ(options->grpc.keepalive_interval, Seconds(60));
  EXPECT_EQ(options->grpc.keepalive_timeout, Millis(500));
  const std::vector<std::string> words = {"--max-concurrent-streams=4294967296"};
  std::string error;
  EXPECT_FALSE(ParseCommandLine(words, error).has_value());
}

TEST(OptionsTest, ClientsGetTheDescriptorsAboveTheReserve) {
  const absl::StatusOr<Options> options = MakeOptions({}, {});
  ASSERT_TRUE(options.ok());
  const auto server = MakeServerOptions(*options, false, kDescriptorReserve + 1);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->client_connections_max, 1u);
  const auto none = MakeServerOptions(*options, false, kDescriptorReserve);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("file descriptor limit"));
}

TEST(OptionsTest, EveryMemberComesToTheSameCluster) {
  const std::string cluster = "a=http://127.0.0.1:1,b=http://127.0.0.1:2,b=http://127.0.0.1:3";
  const auto make = [&](const std::string& name, const std::string& urls) {
    return MakeServerOptions(
        *MakeOptions({{"name", name}, {"initial-cluster", cluster}, {"initial-advertise-peer-urls", urls}}, {}), false,
        1'000);
  };
  const auto a = make("a", "http://127.0.0.1:1");
  const auto b = make("b", "http://127.0.0.1:3,http://127.0.0.1:2");
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->member.cluster, b->member.cluster);
  EXPECT_EQ(a->member.initial_members, b->member.initial_members);
  EXPECT_NE(a->member.id, b->member.id);
}

TEST(OptionsTest, LeaderLeasesAreOffUnlessAskedFor) {
  for (const bool asked : {false, true}) {
    FlagValues values = {{"name", "m1"}, {"initial-cluster", "m1=http://localhost:2380"}};
    if (asked) values["detcd-lease-reads"] = "true";
    const absl::StatusOr<Options> options = MakeOptions(values, {});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->lease_reads, asked);
    const absl::StatusOr<member::ServerOptions> server = MakeServerOptions(*options, true, 10'000);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(server->member.lease_reads, asked);
  }
}

TEST(OptionsTest, LeaderLeasesThatAreOfNoUseAreRefusedByName) {
  Options options = *MakeOptions({{"name", "m1"}, {"detcd-lease-reads", "true"}}, {});
  options.heartbeat_interval = options.election_timeout;
  EXPECT_THAT(MakeServerOptions(options, true, 10'000).status().message(),
              HasSubstr("--detcd-lease-reads: leader leases: with an election timeout of 1000000 us"));
}

}  // namespace
}  // namespace detcd::realnet
