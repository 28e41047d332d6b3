// libFuzzer: bytes of a peer against every decoder of the peer port. The first byte chooses the decoder and how the rest
// is cut; decoders keep what they hold bounded and never fail a CHECK, and cuts change nothing.
#include <cstdlib>
#include <string>
#include <vector>

#include "core/wire/peer_framing.h"
#include "core/wire/peer_handshake.h"
#include "core/wire/peer_http.h"

namespace detcd::wire {
namespace {

std::vector<raft::Message> Frames(member::PeerChannel channel, std::string_view bytes, size_t piece) {
  PeerFrameDecoder decoder(channel, MemberId(1), MemberId(2));
  std::vector<raft::Message> messages;
  while (!bytes.empty()) {
    std::string_view input = bytes.substr(0, piece);
    bytes.remove_prefix(input.size());
    while (true) {
      raft::Message message;
      const auto step = decoder.Next(input, message);
      if (step == PeerFrameDecoder::Step::kMessage) messages.push_back(std::move(message));
      if (step == PeerFrameDecoder::Step::kMalformed) return messages;
      if (step == PeerFrameDecoder::Step::kNeedMore) break;
    }
  }
  return messages;
}

void Http(std::string_view bytes, size_t piece) {
  HttpHeadReader reader;
  std::string_view input = bytes;
  if (reader.Next(input) != HttpHeadReader::Step::kHead) return;
  HttpRequestHead request;
  if (ParseRequestHead(reader.text(), request)) return;
  CheckCompatible(PeerIdentity{.id = MemberId(1), .cluster = ClusterId(1)}, request);
  const auto framing = RequestBodyFraming(request);
  if (!framing) return;
  HttpBodyReader body(*framing);
  while (!input.empty()) {
    std::string_view part = input.substr(0, piece);
    input.remove_prefix(part.size());
    std::string_view content;
    while (true) {
      const auto step = body.Next(part, content);
      if (step == HttpBodyReader::Step::kNeedMore) break;
      if (step != HttpBodyReader::Step::kContent) return;
    }
  }
}

}  // namespace
}  // namespace detcd::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = 1 + data[0] / 4;
  using detcd::member::PeerChannel;
  if (data[0] % 4 == 0) {
    detcd::wire::Http(bytes, piece);
  } else {
    const auto channel = data[0] % 4 == 1 ? PeerChannel::kMessage : PeerChannel::kAppend;
    if (detcd::wire::Frames(channel, bytes, piece) != detcd::wire::Frames(channel, bytes, bytes.size())) std::abort();
  }
  return 0;
}
