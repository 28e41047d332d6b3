#include "core/member/cluster_id.h"

#include <algorithm>
#include <openssl/sha.h>

#include "core/base/codec.h"

namespace detcd::member {
namespace {

uint64_t FirstWordOfSha1(const std::string& text) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return ByteReader({reinterpret_cast<const char*>(digest), 8}).BigEndian64();
}

}  // namespace

MemberId DeriveMemberId(std::vector<std::string> peer_urls, std::string_view cluster_token) {
  std::sort(peer_urls.begin(), peer_urls.end());
  std::string text;
  for (const std::string& url : peer_urls) text += url;
  text += cluster_token;
  return MemberId(FirstWordOfSha1(text));
}

ClusterId DeriveClusterId(std::vector<MemberId> members) {
  std::sort(members.begin(), members.end());
  std::string text;
  ByteWriter writer(text);
  for (MemberId member : members) writer.BigEndian64(member.value);
  return ClusterId(FirstWordOfSha1(text));
}

}  // namespace detcd::member
