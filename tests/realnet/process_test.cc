// The programs as processes: detcd as one member and as three, with detcd-bench and plain sockets as clients, and
// etcdctl where it is installed. Loopback only, free ports, every wait bounded, every child ended by its own id.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace detcd::realnet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kWaitMillis = 30'000;
constexpr char kReady[] = "ready to serve client requests";

void SleepMillis(long millis) {
  const timespec time = {.tv_sec = millis / 1'000, .tv_nsec = millis % 1'000 * 1'000'000};
  ::nanosleep(&time, nullptr);
}

// Polls `done` for as long as a slow machine may need.
template <class Done>
bool Eventually(Done done) {
  for (int waited = 0; waited < kWaitMillis; waited += 20) {
    if (done()) return true;
    SleepMillis(20);
  }
  return false;
}

// A port that nobody listens on now. It is given back before the child takes it: a small race that tests live with.
uint16_t FreePort() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A child with its output in files. Killed and reaped by its destructor.
class Process {
 public:
  Process(const std::vector<std::string>& words, std::string output_prefix) : prefix_(std::move(output_prefix)) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string out = prefix_ + ".out";
    const std::string err = prefix_ + ".err";
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int out_descriptor = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err_descriptor = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out_descriptor, 1);
    ::dup2(err_descriptor, 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~Process() {
    if (status_) return;
    Signal(SIGKILL);
    Wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) { ::kill(pid_, signal); }
  // The status of its end as wait(2) has it; kills what does not end.
  int Wait() {
    if (status_) return *status_;
    int status = 0;
    if (!Eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) {
      ADD_FAILURE() << "killed: did not end by itself; " << Err();
      Signal(SIGKILL);
      ::waitpid(pid_, &status, 0);
    }
    status_ = status;
    return status;
  }
  // 0..255, or minus the signal.
  int ExitCode() {
    const int status = Wait();
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::string Out() const { return ReadFile(prefix_ + ".out"); }
  std::string Err() const { return ReadFile(prefix_ + ".err"); }

 private:
  std::string prefix_;
  pid_t pid_ = 0;
  std::optional<int> status_;
};

// One HTTP/1.1 GET over a plain socket: the whole answer, or nothing.
std::string HttpGet(uint16_t port, const std::string& path) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(::write(descriptor, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    pollfd readable = {.fd = descriptor, .events = POLLIN, .revents = 0};
    char buffer[4'096];
    while (::poll(&readable, 1, kWaitMillis) == 1) {
      const ssize_t got = ::read(descriptor, buffer, sizeof(buffer));
      if (got <= 0) break;
      answer.append(buffer, static_cast<size_t>(got));
    }
  }
  ::close(descriptor);
  return answer;
}

class ProcessTest : public ::testing::Test {
 protected:
  struct Member {
    std::string name;
    uint16_t client_port = FreePort();
    uint16_t peer_port = FreePort();
    std::unique_ptr<Process> process;

    std::string client_url() const { return "http://127.0.0.1:" + std::to_string(client_port); }
    std::string peer_url() const { return "http://127.0.0.1:" + std::to_string(peer_port); }
  };

  void SetUp() override {
    char path[] = "/tmp/detcd-process-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    members_.clear();
    std::filesystem::remove_all(folder_);
  }

  void MakeMembers(int count) {
    for (int i = 0; i < count; ++i) {
      members_.push_back({});
      members_.back().name = "m" + std::to_string(i);
    }
  }
  std::string DataDir(const Member& member) const { return folder_ + "/" + member.name; }

  std::vector<std::string> ServerWords(const Member& member) const {
    std::string cluster;
    for (const Member& row : members_) cluster += (cluster.empty() ? "" : ",") + row.name + "=" + row.peer_url();
    return {DETCD_PROGRAM,
            "--name",
            member.name,
            "--data-dir",
            DataDir(member),
            "--listen-client-urls",
            member.client_url(),
            "--advertise-client-urls",
            member.client_url(),
            "--listen-peer-urls",
            member.peer_url(),
            "--initial-advertise-peer-urls",
            member.peer_url(),
            "--initial-cluster",
            cluster,
            "--initial-cluster-state=new",
            "-snapshot-count=5000"};
  }

  void Launch(Member& member) {
    member.process = std::make_unique<Process>(ServerWords(member), folder_ + "/" + member.name + "-log");
  }
  void AwaitReady(Member& member) {
    ASSERT_TRUE(Eventually([&] { return member.process->Err().find(kReady) != std::string::npos; }))
        << member.process->Err();
  }

  // Runs a program to its end.
  struct Ended {
    int code;
    std::string out;
    std::string err;
  };
  Ended Run(const std::vector<std::string>& words) {
    Process process(words, folder_ + "/run" + std::to_string(runs_++));
    const int code = process.ExitCode();
    return {code, process.Out(), process.Err()};
  }
  std::string Endpoints() const {
    std::string text;
    for (const Member& member : members_) text += (text.empty() ? "" : ",") + member.client_url();
    return text;
  }
  Ended Bench(std::vector<std::string> words) {
    words.insert(words.begin(), DETCD_BENCH_PROGRAM);
    words.insert(words.end(), {"--endpoints", Endpoints(), "--json"});
    return Run(words);
  }
  // Debian's client; false when it is not installed.
  bool HasEtcdctl() { return Run({"etcdctl", "version"}).code == 0; }
  Ended Etcdctl(std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "ETCDCTL_API=3", "etcdctl", "--endpoints", Endpoints()});
    return Run(words);
  }

  // Every key of `count` is there, on every member.
  void ExpectKeys(const std::string& count) {
    for (const char* how : {"--timeout=20", "--serializable"}) {
      const Ended read = Bench({"range", how, "--sequential", "--total", count, "--key-space", count, "--in-flight",
                                "30", "--connections", "3"});
      EXPECT_EQ(read.code, 0) << read.out << read.err;
      EXPECT_THAT(read.out, HasSubstr("\"good\":" + count + ","));
      EXPECT_THAT(read.out, HasSubstr("\"missing\":0,"));
    }
  }
  void Fill(const std::string& count) {
    const Ended wrote = Bench(
        {"put", "--sequential", "--total", count, "--key-space", count, "--in-flight", "30", "--connections", "3"});
    ASSERT_EQ(wrote.code, 0) << wrote.out << wrote.err;
    EXPECT_THAT(wrote.out, HasSubstr("\"good\":" + count + ","));
  }

  std::string folder_;
  std::vector<Member> members_;
  int runs_ = 0;
};

TEST_F(ProcessTest, LoadComesAtARateAndInTransactions) {
  MakeMembers(1);
  Launch(members_[0]);
  AwaitReady(members_[0]);
  const std::vector<std::string> txn = {"txn", "--sequential", "--total", "50", "--key-space", "50"};
  EXPECT_THAT(Bench(txn).out, HasSubstr("\"good\":50,")) << "the other branch answers too";
  EXPECT_THAT(Bench(txn).out, HasSubstr("\"missing\":50,"));
  Fill("50");
  EXPECT_THAT(Bench(txn).out, HasSubstr("\"missing\":0,"));
  // As many as are due in the time, however fast the answers are; and the first at once.
  const Ended paced = Bench({"put", "--rate", "40", "--duration", "0.5", "--in-flight", "20", "--connections", "2"});
  EXPECT_EQ(paced.code, 0) << paced.out << paced.err;
  EXPECT_THAT(paced.out, HasSubstr("\"good\":20,"));
}

TEST_F(ProcessTest, OneMemberServesStopsAndComesBack) {
  MakeMembers(1);
  Member& member = members_[0];
  Launch(member);
  AwaitReady(member);
  EXPECT_THAT(member.process->Err(), Not(HasSubstr("\"level\":\"error\"")));
  EXPECT_THAT(member.process->Err(), HasSubstr("--snapshot-count"));
  struct stat status;
  ASSERT_EQ(::stat(DataDir(member).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  Fill("500");
  ExpectKeys("500");
  EXPECT_THAT(HttpGet(member.client_port, "/health"), HasSubstr("{\"health\":\"true\",\"reason\":\"\"}"));
  EXPECT_THAT(HttpGet(member.client_port, "/version"),
              HasSubstr("{\"etcdserver\":\"3.7.3\",\"etcdcluster\":\"3.7.0\",\"storage\":\"3.7.0\"}"));
  EXPECT_THAT(HttpGet(member.client_port, "/no"), StartsWith("HTTP/1.1 404"));

  for (const int signal : {SIGTERM, SIGKILL, SIGINT}) {
    member.process->Signal(signal);
    EXPECT_EQ(member.process->ExitCode(), -signal);
    Launch(member);
    AwaitReady(member);
    ExpectKeys("500");
  }
}

TEST_F(ProcessTest, EtcdctlIsServed) {
  if (!HasEtcdctl()) GTEST_SKIP() << "etcdctl is not installed (Debian: etcd-client)";
  MakeMembers(1);
  Launch(members_[0]);
  AwaitReady(members_[0]);
  EXPECT_EQ(Etcdctl({"put", "a1", "one"}).out, "OK\n");
  EXPECT_EQ(Etcdctl({"put", "a2", "two"}).out, "OK\n");
  EXPECT_EQ(Etcdctl({"put", "a1", "uno"}).out, "OK\n");
  EXPECT_EQ(Etcdctl({"get", "--prefix", "a"}).out, "a1\nuno\na2\ntwo\n");
  EXPECT_EQ(Etcdctl({"get", "a1", "a3", "--print-value-only"}).out, "uno\ntwo\n");
  EXPECT_EQ(Etcdctl({"get", "a1", "--rev", "2"}).out, "a1\none\n");
  EXPECT_EQ(Etcdctl({"get", "--prefix", "a", "--limit", "1", "--sort-by", "MODIFY", "--order", "ASCEND"}).out,
            "a2\ntwo\n");
  EXPECT_EQ(Etcdctl({"get", "a2", "--consistency=s"}).out, "a2\ntwo\n");
  EXPECT_EQ(Etcdctl({"del", "a1"}).out, "1\n");
  EXPECT_EQ(Etcdctl({"get", "a1"}).out, "");
  EXPECT_THAT(Etcdctl({"endpoint", "status", "-w", "table"}).out, HasSubstr("3.7.3"));
  EXPECT_THAT(Etcdctl({"member", "list"}).out, HasSubstr(", started, m0, " + members_[0].peer_url()));
  EXPECT_EQ(Etcdctl({"endpoint", "health"}).code, 0);
}

TEST_F(ProcessTest, ASecondProcessOnADataDirectoryIsRefused) {
  MakeMembers(1);
  Launch(members_[0]);
  AwaitReady(members_[0]);
  std::vector<std::string> words = ServerWords(members_[0]);
  words.insert(words.end(), {"--listen-client-urls", "http://127.0.0.1:0", "--listen-peer-urls", "http://127.0.0.1:0"});
  const Ended second = Run(words);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr("locked"));
  EXPECT_THAT(second.err, HasSubstr("member/wal"));
}

TEST_F(ProcessTest, PortsInUseAreNamed) {
  MakeMembers(1);
  Launch(members_[0]);
  AwaitReady(members_[0]);
  for (const char* flag : {"--listen-client-urls", "--listen-peer-urls"}) {
    std::vector<std::string> words = ServerWords(members_[0]);
    const bool clients = std::string(flag) == "--listen-client-urls";
    words.insert(words.end(), {"--data-dir", folder_ + "/other" + (clients ? "1" : "2"),
                               clients ? "--listen-peer-urls" : "--listen-client-urls", "http://127.0.0.1:0"});
    const Ended ended = Run(words);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr(std::to_string(clients ? members_[0].client_port : members_[0].peer_port)));
    EXPECT_THAT(ended.err, HasSubstr("in use"));
  }
}

TEST_F(ProcessTest, ADamagedLogIsNamed) {
  MakeMembers(1);
  Launch(members_[0]);
  AwaitReady(members_[0]);
  Fill("200");
  members_[0].process->Signal(SIGTERM);
  EXPECT_EQ(members_[0].process->ExitCode(), -SIGTERM);
  const std::string segment = DataDir(members_[0]) + "/member/wal/0000000000000000-0000000000000000.wal";
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file.seekp(2'000));
    file << "damage";
  }
  const Ended ended = Run(ServerWords(members_[0]));
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("0000000000000000-0000000000000000.wal"));
  EXPECT_THAT(ended.err, HasSubstr("offset"));
}

TEST_F(ProcessTest, CommandLinesThatAreNoneAndImpossibleOnes) {
  const std::string data = "--data-dir=" + folder_ + "/x";
  const Ended version = Run({DETCD_PROGRAM, "--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, StartsWith("etcd Version: 3.7.3\nGit SHA: "));
  EXPECT_EQ(Run({DETCD_PROGRAM, "-h"}).code, 0);
  const Ended unknown = Run({DETCD_PROGRAM, "--no-such-flag"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, StartsWith("flag provided but not defined: -no-such-flag\nUsage:"));
  EXPECT_EQ(Run({DETCD_PROGRAM, "--heartbeat-interval=x"}).code, 2);
  EXPECT_EQ(Run({DETCD_PROGRAM, "--log-level=loud"}).code, 2);
  const Ended failed = Run({DETCD_PROGRAM, data, "--election-timeout=400"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("\"level\":\"warn\""));
  EXPECT_THAT(failed.err, HasSubstr("\"msg\":\"failed to verify flags\""));
  const Ended missing = Run({DETCD_PROGRAM, data, "--initial-cluster=other=http://127.0.0.1:1"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("couldn't find local name"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/x"));
  const Ended folder = Run({DETCD_PROGRAM, "--data-dir=/proc/none"});
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.err, HasSubstr("/proc/none"));
  EXPECT_EQ(Run({DETCD_BENCH_PROGRAM, "put", "--connections", "2"}).code, 64);
}

TEST_F(ProcessTest, ThreeMembersOutliveTheirLeader) {
  MakeMembers(3);
  for (Member& member : members_) Launch(member);
  for (Member& member : members_) AwaitReady(member);
  Fill("300");
  ExpectKeys("300");
  size_t leader = members_.size();
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].process->Err().find("\"msg\":\"became leader\"") != std::string::npos) leader = i;
  }
  ASSERT_LT(leader, members_.size());

  Process load({DETCD_BENCH_PROGRAM, "put", "--endpoints", Endpoints(), "--connections", "3", "--in-flight", "9",
                "--duration", "4", "--key-space", "300", "--json"},
               folder_ + "/load");
  SleepMillis(500);
  members_[leader].process->Signal(SIGKILL);
  EXPECT_EQ(members_[leader].process->ExitCode(), -SIGKILL);
  // Two of three go on.
  ASSERT_TRUE(Eventually([&] {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (i != leader && HttpGet(members_[i].client_port, "/health").find("\"health\":\"true\"") == std::string::npos)
        return false;
    }
    return true;
  }));
  load.Wait();
  EXPECT_THAT(load.Out(), HasSubstr("\"good\":"));
  Launch(members_[leader]);
  AwaitReady(members_[leader]);
  ExpectKeys("300");
  for (Member& member : members_) member.process->Signal(SIGTERM);
  for (Member& member : members_) EXPECT_EQ(member.process->ExitCode(), -SIGTERM);
}

}  // namespace
}  // namespace detcd::realnet
