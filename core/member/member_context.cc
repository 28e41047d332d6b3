#include "core/member/member_context.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "core/member/json_reader.h"

namespace detcd::member {
namespace {

bool ReadField(JsonReader& json, std::string_view name, MemberContext& out) {
  if (json.TakeWord("null")) return true;
  if (name == "id") return json.Unsigned(out.member.id.value);
  if (name == "name") return json.String(out.member.name);
  if (name == "peerURLs") return json.Strings(out.member.peer_urls);
  if (name == "clientURLs") return json.Strings(out.member.client_urls);
  if (name == "isLearner") return json.Bool(out.member.is_learner);
  if (name == "isPromote") return json.Bool(out.is_promote);
  return json.Skip();
}

// As Go's encoder writes strings: also <, > and & are escaped, and the two line separators of Unicode.
void AppendString(std::string_view text, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\b':
        out += "\\b";
        continue;
      case '\f':
        out += "\\f";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\r':
        out += "\\r";
        continue;
      case '\t':
        out += "\\t";
        continue;
      default:
        break;
    }
    const std::string_view three = text.substr(i, 3);
    if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {
      out += three == "\xE2\x80\xA8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '<' || c == '>' || c == '&') {
      out += absl::StrFormat("\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendStrings(const std::vector<std::string>& texts, std::string& out) {
  out += '[';
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    AppendString(texts[i], out);
  }
  out += ']';
}

}  // namespace

std::optional<MemberContext> DecodeMemberContext(std::string_view text) {
  MemberContext context;
  JsonReader json(text);
  if (!json.Take('{')) return std::nullopt;
  if (!json.Take('}')) {
    do {
      std::string name;
      if (!json.String(name) || !json.Take(':') || !ReadField(json, name, context)) return std::nullopt;
    } while (json.Take(','));
    if (!json.Take('}')) return std::nullopt;
  }
  if (!json.AtEnd()) return std::nullopt;
  return context;
}

std::string EncodeMemberContext(const MemberContext& context) {
  const rpc::MemberRow& member = context.member;
  std::string out = absl::StrFormat(R"({"id":%d,"peerURLs":)", member.id.value);
  if (member.peer_urls.empty()) {
    out += "null";
  } else {
    AppendStrings(member.peer_urls, out);
  }
  if (member.is_learner) out += R"(,"isLearner":true)";
  if (!member.name.empty()) {
    out += R"(,"name":)";
    AppendString(member.name, out);
  }
  if (!member.client_urls.empty()) {
    out += R"(,"clientURLs":)";
    AppendStrings(member.client_urls, out);
  }
  if (context.is_promote) out += R"(,"isPromote":true)";
  out += '}';
  return out;
}

}  // namespace detcd::member
