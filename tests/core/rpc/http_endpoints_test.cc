#include "core/rpc/http_endpoints.h"

#include "tests/support/fake_backend.h"

namespace detcd::rpc {
namespace {

class HttpEndpointsTest : public ::testing::Test, public HttpResponder {
 protected:
  void Respond(HttpRequestId request, HttpResponse response) override {
    EXPECT_TRUE(responses.emplace(request, std::move(response)).second);
  }
  HttpRequestId Get(std::string_view path, std::string_view query = "", std::string_view method = "GET") {
    const HttpRequestId id = next_id_++;
    endpoints.Handle(
        *this, id,
        {.method = std::string(method), .target = std::string(path) + (query.empty() ? "" : "?") + std::string(query)});
    return id;
  }

  testing::FakeBackend backend;
  HttpEndpoints endpoints{backend};
  std::map<HttpRequestId, HttpResponse> responses;

 private:
  HttpRequestId next_id_ = 1;
};

HttpResponse Text(uint16_t status, std::string body) {
  return {.status = status, .headers = {{"X-Content-Type-Options", "nosniff"}}, .body = std::move(body)};
}
const HttpResponse kHealthy = {.status = 200,
                               .content_type = "text/plain; charset=utf-8",
                               .headers = {},
                               .body = "{\"health\":\"true\",\"reason\":\"\"}"};

TEST_F(HttpEndpointsTest, HealthWaitsForARead) {
  const HttpRequestId id = Get("/health");
  EXPECT_TRUE(responses.empty());
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(responses[id], kHealthy);
}

TEST_F(HttpEndpointsTest, HealthTellsWhyTheReadFailed) {
  const HttpRequestId id = Get("/health", "serializable=1&serializable=true");
  backend.FinishRead(ApiError::kTimeout);
  EXPECT_EQ(responses[id],
            Text(503, "{\"health\":\"false\",\"reason\":\"RANGE ERROR:etcdserver: request timed out\"}\n"));
}

TEST_F(HttpEndpointsTest, HealthTellsOfAlarmsFirst) {
  backend.status.alarms = {{.type = 1, .member = MemberId(11)}};
  backend.status.leader = MemberId();
  EXPECT_EQ(responses[Get("/health")], Text(503, "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n"));
  EXPECT_EQ(responses[Get("/health", "exclude=NOSPACE&exclude=CORRUPT")],
            Text(503, "{\"health\":\"false\",\"reason\":\"RAFT NO LEADER\"}\n"));
  backend.status.alarms = {{.type = 9, .member = MemberId(11)}};
  EXPECT_EQ(responses[Get("/health", "serializable=true")],
            Text(503, "{\"health\":\"false\",\"reason\":\"ALARM UNKNOWN\"}\n"));
}

TEST_F(HttpEndpointsTest, HealthNeedsALeaderUnlessSerializable) {
  backend.status.leader = MemberId();
  EXPECT_EQ(responses[Get("/health")], Text(503, "{\"health\":\"false\",\"reason\":\"RAFT NO LEADER\"}\n"));
  EXPECT_EQ(responses[Get("/health", "serializable=true")], kHealthy);
  EXPECT_EQ(responses[Get("/health", "exclude=NOSPACE&serializ%61ble=tru%65&%zz=1")], kHealthy);
  EXPECT_EQ(responses[Get("/health", "serializable=True")].status, 503);
  EXPECT_EQ(responses[Get("/health", "serializable")].status, 503);
  EXPECT_EQ(responses[Get("/health", "a;serializable=true")].status, 503);
}

TEST_F(HttpEndpointsTest, CancelledHealthIsNotAnswered) {
  const HttpRequestId id = Get("/health");
  endpoints.Abandon(id);
  endpoints.Abandon(id);
  backend.FinishRead(ApiError::kOk);
  EXPECT_TRUE(responses.empty());
}

TEST_F(HttpEndpointsTest, VersionBeforeAndAfterItIsKnown) {
  backend.status.storage_version.clear();
  EXPECT_EQ(responses[Get("/version")].body,
            "{\"etcdserver\":\"3.7.3\",\"etcdcluster\":\"not_decided\",\"storage\":\"unknown\"}");
  backend.status.storage_version = "3.7.0";
  backend.cluster_version = "3.7.0";
  EXPECT_EQ(responses[Get("/version")],
            (HttpResponse{.status = 200,
                          .content_type = "application/json",
                          .headers = {},
                          .body = "{\"etcdserver\":\"3.7.3\",\"etcdcluster\":\"3.7.0\",\"storage\":\"3.7.0\"}"}));
}

TEST(HttpRequestTest, TargetSplitsAtItsFirstMark) {
  const HttpRequest request{.target = "/a?b?c", .headers = {{"X-One", "1"}, {"x-one", "2"}}};
  EXPECT_EQ(request.path(), "/a");
  EXPECT_EQ(request.query(), "b?c");
  EXPECT_EQ(request.Header("x-ONE"), "1");
  EXPECT_EQ(request.Header("x"), "");
  EXPECT_EQ(HttpRequest{.target = "/a"}.query(), "");
}

TEST_F(HttpEndpointsTest, OtherMethodsAndPathsAreRefused) {
  for (const char* path : {"/health", "/version"}) {
    for (const char* method : {"POST", "HEAD", "get"}) {
      HttpResponse expected = Text(405, "Method Not Allowed\n");
      expected.headers.push_back({"Allow", "GET"});
      EXPECT_EQ(responses[Get(path, "", method)], expected);
    }
  }
  for (const char* path : {"", "/", "/health/", "/versions", "/v2/keys"}) {
    EXPECT_EQ(responses[Get(path)], Text(404, "404 page not found\n"));
  }
}

}  // namespace
}  // namespace detcd::rpc
