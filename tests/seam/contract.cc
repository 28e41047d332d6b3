#include "tests/seam/contract.h"

namespace detcd {

void StreamRecorder::OnData(std::string_view bytes) {
  EXPECT_FALSE(bytes.empty());
  EXPECT_FALSE(read_end) << "bytes after the end of reading";
  data += bytes;
  ++events;
}

void StreamRecorder::OnClosed(IoError error) {
  EXPECT_NE(error, IoError::kOk);
  EXPECT_FALSE(closed.has_value()) << "closed twice";
  closed = error;
  ++events;
}

void AcceptRecorder::OnAccept(std::unique_ptr<Stream> stream) {
  ++events;
  if (drop) return;
  accepted.push_back(std::make_unique<StreamRecorder>());
  stream->SetListener(*accepted.back());
  if (start_paused) stream->PauseReading();
  accepted.back()->stream = std::move(stream);
}

void FileRecorder::OnFileDone(FileToken token, FileResult result) {
  order.push_back(token);
  EXPECT_TRUE(results.emplace(token, std::move(result)).second) << "token " << token << " completed twice";
}

Host& SeamContract::Boot(int host) {
  Host& result = world_->Start(host);
  result.events().SetTurnListener(turns_[host]);
  return result;
}

FileResult SeamContract::Wait(FileRecorder& recorder, FileToken token) {
  EXPECT_TRUE(Run([&] { return recorder.Has(token); })) << "call " << token << " never completed";
  return recorder.Has(token) ? recorder.results.at(token) : FileResult{.error = IoError::kTimedOut};
}

std::unique_ptr<SeamContract::Pair> SeamContract::Connect(Host& from, Host& to, int to_host, bool start_paused) {
  auto pair = std::make_unique<Pair>();
  pair->server.start_paused = start_paused;
  ListenResult listening = to.network().Listen(world_->NewAddress(to_host), pair->server);
  EXPECT_EQ(listening.error, IoError::kOk);
  if (listening.acceptor == nullptr) return pair;
  pair->acceptor = std::move(listening.acceptor);
  pair->client.stream = from.network().Connect(pair->acceptor->Local(), pair->client);
  EXPECT_EQ(pair->client.events, 0u) << "an event inside Connect";
  EXPECT_TRUE(Run([&] { return pair->client.connected && pair->server.accepted.size() == 1; }));
  return pair;
}

bool WriteAll(SeamWorld& world, StreamRecorder& writer, const Bytes& bytes) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    const int writable = writer.writable;
    const Bytes rest = bytes.Slice(taken, bytes.size() - taken);
    taken += writer.stream->Write({&rest, 1});
    if (taken == bytes.size()) break;
    if (!world.RunUntil([&] { return writer.writable > writable || writer.closed; })) return false;
    if (writer.closed) return false;
  }
  return true;
}

std::string Pattern(size_t size, uint64_t salt) {
  std::string result(size, '\0');
  for (size_t i = 0; i < size; ++i) result[i] = static_cast<char>(MixWord(i / 8 + salt * 1'000'003) >> (i % 8 * 8));
  return result;
}

}  // namespace detcd
