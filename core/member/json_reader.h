// The JSON that members say to each other, read in one pass (RFC 8259).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace detcd::member {

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
  static constexpr int kDepthMax = 32;  // of arrays and objects that are passed over

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

}  // namespace detcd::member
