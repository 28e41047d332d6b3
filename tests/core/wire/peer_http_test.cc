#include "core/wire/peer_http.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/limits.h"
#include "core/wire/url.h"

namespace detcd::wire {
namespace {

struct Dechunked {
  std::string content;
  ChunkedDecoder::Step last = ChunkedDecoder::Step::kNeedMore;
  std::string rest;
};
Dechunked Dechunk(std::string_view bytes, size_t piece) {
  ChunkedDecoder decoder;
  Dechunked result;
  while (!bytes.empty()) {
    std::string_view input = bytes.substr(0, piece);
    bytes.remove_prefix(input.size());
    std::string_view content;
    while ((result.last = decoder.Next(input, content)) == ChunkedDecoder::Step::kContent) result.content += content;
    if (result.last != ChunkedDecoder::Step::kNeedMore) {
      result.rest = std::string(input) + std::string(bytes);
      break;
    }
  }
  return result;
}

TEST(ChunkedTest, TakesOffSizesExtensionsAndTrailers) {
  for (size_t piece = 1; piece < 60; ++piece) {
    const Dechunked result = Dechunk("3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: v\r\n\r\nnext", piece);
    EXPECT_EQ(result.content, "abc0123456789");
    EXPECT_EQ(result.last, ChunkedDecoder::Step::kEnd);
    EXPECT_EQ(result.rest, "next");
  }
}

TEST(ChunkedTest, RefusesWhatIsNotTheCoding) {
  for (const std::string_view bytes :
       {"x\r\n", "\r\n", "1\nab", "1\r\nabc\r\n", "-1\r\n", "0x1\r\n", "fffffffffffffffff\r\n", "1\r\na\n\n", "0\r\n\n"}) {
    EXPECT_EQ(Dechunk(bytes, 1).last, ChunkedDecoder::Step::kMalformed) << bytes;
  }
  EXPECT_EQ(Dechunk("1;" + std::string(ChunkedDecoder::kLineBytesMax, 'e'), 100).last, ChunkedDecoder::Step::kMalformed);
}

RC_GTEST_PROP(ChunkedProperty, AnyContentComesBack, (const std::vector<std::string>& contents)) {
  std::string bytes;
  std::string want;
  for (const std::string& content : contents) {
    if (content.empty()) continue;
    bytes += ChunkHead(content.size()) + content + std::string(kChunkTail);
    want += content;
  }
  bytes += kLastChunk;
  RC_ASSERT(Dechunk(bytes, *rc::gen::inRange<size_t>(1, 20)).content == want);
}

std::optional<HttpHeadError> ParseRequest(std::string_view text, HttpRequestHead& head) { return ParseRequestHead(text, head); }

TEST(HttpHeadTest, ReadsARequest) {
  HttpRequestHead head;
  ASSERT_EQ(ParseRequest("GET /a/b?c=d HTTP/1.1\r\nHost: x:1\r\nX-Server-From:  1f\t\r\nConnection: Keep-Alive, close\r\n\r\n", head),
            std::nullopt);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.Path(), "/a/b");
  EXPECT_EQ(head.Get("x-server-from"), "1f");
  EXPECT_FALSE(head.Find("absent").has_value());
  EXPECT_FALSE(head.KeepsAlive());
}

TEST(HttpHeadTest, RefusesWhatIsNotARequest) {
  HttpRequestHead head;
  for (const std::string_view text :
       {"\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "G T / HTTP/1.1\r\nA b: c\r\n\r\n", "GET / FTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n fold: x\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\na : b\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\x01\r\n\r\n", "GET /\x7f HTTP/1.1\r\n\r\n"}) {
    EXPECT_EQ(ParseRequest(text, head), HttpHeadError::kMalformed) << text;
  }
  EXPECT_EQ(ParseRequest("PRI * HTTP/2.0\r\n\r\n", head), HttpHeadError::kVersion);
}

TEST(HttpHeadTest, OneFramingOfABodyOnly) {
  const auto framing = [](std::string_view headers) {
    HttpRequestHead head;
    EXPECT_EQ(ParseRequest("POST / HTTP/1.1\r\n" + std::string(headers) + "\r\n", head), std::nullopt);
    return RequestBodyFraming(head);
  };
  EXPECT_EQ(framing("")->content_length, 0u);
  EXPECT_EQ(framing("Content-Length: 12\r\n")->content_length, 12u);
  EXPECT_TRUE(framing("Transfer-Encoding: Chunked\r\n")->is_chunked);
  for (const std::string_view bad :
       {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: -1\r\n",
        "Content-Length: 1x\r\n", "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: gzip\r\n"}) {
    EXPECT_FALSE(framing(bad).has_value()) << bad;
  }
}

TEST(HttpHeadTest, HeadEndsWhereverItIsCutAndHasALimit) {
  const std::string text = "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    HttpHeadReader reader;
    std::string_view first = std::string_view(text).substr(0, cut);
    std::string_view second = std::string_view(text).substr(cut);
    if (reader.Next(first) != HttpHeadReader::Step::kHead) {
      EXPECT_EQ(reader.Next(second), HttpHeadReader::Step::kHead);
    }
    EXPECT_EQ(std::string(first) + std::string(second), "rest");
  }
  const auto with_size = [](size_t size) {
    HttpHeadReader reader;
    const std::string bytes = std::string(size - 4, 'a') + "\r\n\r\n";
    std::string_view input = bytes;
    return reader.Next(input);
  };
  EXPECT_EQ(with_size(kHttpHeaderBytesMax), HttpHeadReader::Step::kHead);
  EXPECT_EQ(with_size(kHttpHeaderBytesMax + 1), HttpHeadReader::Step::kTooLarge);
}

TEST(HttpDateTest, CivilTimes) {
  EXPECT_EQ(FormatHttpDate({0}), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(FormatHttpDate({951'782'399'000'000'000}), "Mon, 28 Feb 2000 23:59:59 GMT");
  EXPECT_EQ(FormatRfc3339({951'782'400'000'000'000}), "2000-02-29T00:00:00Z");
  EXPECT_EQ(FormatRfc3339({-1}), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(FormatRfc3339({1'500'000'000}), "1970-01-01T00:00:01.5Z");
}

TEST(UrlTest, ReadsSchemesHostsAndPorts) {
  EXPECT_EQ(*ParseUrl(" http://10.0.0.1:2380 "), (Url{.host = "10.0.0.1", .port = 2380}));
  EXPECT_EQ(*ParseUrl("https://db1:0"), (Url{.scheme = UrlScheme::kHttps, .host = "db1", .port = 0}));
  EXPECT_EQ(*ParseUrl("http://[::1]:65535"), (Url{.host = "::1", .port = 65535}));
  EXPECT_EQ(*ParseUrl("unix:///run/d.sock"), (Url{.scheme = UrlScheme::kUnix, .host = "/run/d.sock"}));
  EXPECT_EQ(HostAndPort(*ParseUrl("http://[::1]:1")), "[::1]:1");
}

TEST(UrlTest, ErrorsNameTheUrl) {
  const auto error = [](std::string_view text) { return std::string(ParseUrl(text).status().message()); };
  EXPECT_EQ(error("ftp://a:1"), "URL scheme must be http, https, unix, or unixs: ftp://a:1");
  EXPECT_EQ(error("a:1"), "URL scheme must be http, https, unix, or unixs: a:1");
  EXPECT_EQ(error(""), "URL scheme must be http, https, unix, or unixs: ");
  for (const std::string url : {"http://a", "http://:1", "http://a:", "http://a:65536", "http://a:x", "http://::1:5", "http://u@a:1"}) {
    EXPECT_EQ(error(url), "URL address does not have the form \"host:port\": " + url);
  }
  EXPECT_EQ(error("http://a:1/"), "URL must not contain a path: http://a:1/");
  EXPECT_EQ(error("unix://"), "URL has no socket path: unix://");
}

}  // namespace
}  // namespace detcd::wire
