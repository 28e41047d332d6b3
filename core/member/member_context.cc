#include "core/member/member_context.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"

namespace detcd::member {
namespace {

constexpr int kDepthMax = 32;  // of arrays and objects that are passed over

// A reader of JSON (RFC 8259) that goes once over the text. Every function tells whether its thing was there; after a
// false the reader is of no further use. A hand-made one, because protobuf's JSON mapping needs a generated type per
// shape, and its way back writes 64-bit numbers as strings, which etcd does not read.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }

  // Whether `c` comes next; then it is read.
  bool Take(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool String(std::string& out) {
    out.clear();
    if (!Take('"')) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
      } else if (!Escape(out)) {
        return false;
      }
    }
    return false;
  }

  bool Unsigned(uint64_t& out) {
    SkipSpace();
    const size_t start = at_;
    out = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      if (out > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
      out = out * 10 + digit;
    }
    return at_ > start;
  }

  bool Bool(bool& out) {
    out = TakeWord("true");
    return out || TakeWord("false");
  }

  bool Strings(std::vector<std::string>& out) {
    out.clear();
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!String(out.emplace_back())) return false;
    } while (Take(','));
    return Take(']');
  }

  // Passes over one value of any kind.
  bool Skip(int depth = 0) {
    if (depth > kDepthMax) return false;
    std::string ignored;
    SkipSpace();
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '"':
        return String(ignored);
      case '{':
        ++at_;
        if (Take('}')) return true;
        do {
          if (!String(ignored) || !Take(':') || !Skip(depth + 1)) return false;
        } while (Take(','));
        return Take('}');
      case '[':
        ++at_;
        if (Take(']')) return true;
        do {
          if (!Skip(depth + 1)) return false;
        } while (Take(','));
        return Take(']');
      default:
        return TakeWord("true") || TakeWord("false") || TakeWord("null") || SkipNumber();
    }
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool SkipNumber() {
    const size_t start = at_;
    while (at_ < text_.size() && std::string_view("+-.eE0123456789").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ > start;
  }

  bool Hex4(uint32_t& out) {
    out = 0;
    if (text_.size() - at_ < 4) return false;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      uint32_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<uint32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<uint32_t>(c - 'A' + 10);
      } else {
        return false;
      }
      out = out << 4 | digit;
    }
    return true;
  }

  bool Escape(std::string& out) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      out += kMeanings[i];
      return true;
    }
    uint32_t rune = 0;
    if (c != 'u' || !Hex4(rune)) return false;
    if (rune >= 0xD800 && rune <= 0xDBFF) {
      uint32_t low = 0;
      if (text_.substr(at_, 2) != "\\u") return false;
      at_ += 2;
      if (!Hex4(low) || low < 0xDC00 || low > 0xDFFF) return false;
      rune = 0x10000 + ((rune - 0xD800) << 10) + (low - 0xDC00);
    } else if (rune >= 0xDC00 && rune <= 0xDFFF) {
      return false;
    }
    AppendUtf8(rune, out);
    return true;
  }

  static void AppendUtf8(uint32_t rune, std::string& out) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (rune >> shift & 0x3F)); };
    if (rune < 0x80) {
      out += static_cast<char>(rune);
    } else if (rune < 0x800) {
      out += static_cast<char>(0xC0 | rune >> 6);
      tail(0);
    } else if (rune < 0x10000) {
      out += static_cast<char>(0xE0 | rune >> 12);
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xF0 | rune >> 18);
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

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
