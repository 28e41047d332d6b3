// The contract suite of the seam: what core/io promises, tested over any implementation. A binary that links
// seam_contract runs it with
//
//   INSTANTIATE_TEST_SUITE_P(Sim, SeamContract, ::testing::Values(&MakeSimWorld));
//
// The recorders write down what a listener heard. Tests hold them (with the handles inside) below the world, so that
// handles are destroyed first, or after End, which must be safe too.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/seam/seam_world.h"

namespace detcd {

struct StreamRecorder final : StreamListener {
  void OnConnected() override { connected = true, ++events; }
  void OnData(std::string_view bytes) override;
  void OnReadEnd() override { read_end = true, ++events; }
  void OnWritable() override { ++writable, ++events; }
  void OnClosed(IoError error) override;

  std::unique_ptr<Stream> stream;
  bool connected = false;
  bool read_end = false;
  int writable = 0;
  uint64_t events = 0;
  std::optional<IoError> closed;
  std::string data;
};

struct AcceptRecorder final : AcceptListener {
  void OnAccept(std::unique_ptr<Stream> stream) override;

  bool drop = false;        // drops each stream instead of taking it
  bool start_paused = false;  // pauses reading before the first byte
  uint64_t events = 0;
  std::vector<std::unique_ptr<StreamRecorder>> accepted;
};

struct FileRecorder final : FileListener {
  void OnFileDone(FileToken token, FileResult result) override;
  bool Has(FileToken token) const { return results.contains(token); }

  std::vector<FileToken> order;
  std::map<FileToken, FileResult> results;
};

struct TimerRecorder final : TimerListener {
  explicit TimerRecorder(Clock& c) : clock(c) {}
  void OnTimer(uint64_t token) override { fired.emplace_back(token, clock.Now()); }

  Clock& clock;
  std::vector<std::pair<uint64_t, Instant>> fired;
};

struct PostRecorder final : PostListener {
  void OnPost(uint64_t token) override { tokens.push_back(token); }

  std::vector<uint64_t> tokens;
};

struct TurnRecorder final : TurnListener {
  void OnEndTurn() override { ++turns; }

  uint64_t turns = 0;
};

struct OffloadRecorder final : OffloadListener {
  void OnOffloaded(uint64_t token, Bytes result) override { results.emplace(token, std::move(result)); }

  std::map<uint64_t, Bytes> results;
};

struct ResolveRecorder final : ResolveListener {
  void OnResolved(uint64_t token, IoError error, std::vector<Address> addresses) override {
    errors.emplace(token, error);
    results.emplace(token, std::move(addresses));
  }

  std::map<uint64_t, IoError> errors;
  std::map<uint64_t, std::vector<Address>> results;
};

// Runs each test over one new world.
class SeamContract : public ::testing::TestWithParam<SeamWorldFactory> {
 protected:
  SeamContract() : world_(GetParam()()) {}

  // Starts an incarnation whose turns turn_[host] counts.
  Host& Boot(int host = 0);
  // Starts one without a turn listener, for tests that set their own.
  Host& BootBare(int host = 0) { return world_->Start(host); }

  bool Run(const std::function<bool()>& done, Duration limit = Seconds(10)) { return world_->RunUntil(done, limit); }
  // Lets pass a span in which the test expects nothing (more) to happen.
  void Pass(Duration span = Millis(50)) { world_->RunUntil([] { return false; }, span); }
  // Runs until `token` is done and returns its result; a default result and a failure when it never is.
  FileResult Wait(FileRecorder& recorder, FileToken token);
  // A connection from host `from` to a listener made at host `to`: client and server side.
  struct Pair {
    AcceptRecorder server;
    std::unique_ptr<Acceptor> acceptor;
    StreamRecorder client;
    StreamRecorder& peer() { return *server.accepted.at(0); }
  };
  std::unique_ptr<Pair> Connect(Host& from, Host& to, int to_host, bool start_paused = false);

  std::unique_ptr<SeamWorld> world_;
  TurnRecorder turns_[2];
};

// Writes all of `bytes`, driving the world while there is no room. False when the stream closed or time ran out.
bool WriteAll(SeamWorld& world, StreamRecorder& writer, const Bytes& bytes);

// Text of `size` bytes in which every position is told apart from its neighbours.
std::string Pattern(size_t size, uint64_t salt = 0);

}  // namespace detcd
