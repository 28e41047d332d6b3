#include "core/rpc/http.h"

#include <algorithm>

namespace detcd::rpc {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view HttpRequest::path() const { return std::string_view(target).substr(0, target.find('?')); }

std::string_view HttpRequest::query() const {
  const size_t mark = target.find('?');
  return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
}

const HttpHeader* HttpRequest::Find(std::string_view name) const {
  const auto same = [](char a, char b) { return Lower(a) == Lower(b); };
  for (const HttpHeader& header : headers) {
    if (std::equal(header.name.begin(), header.name.end(), name.begin(), name.end(), same)) return &header;
  }
  return nullptr;
}

std::string_view HttpRequest::Header(std::string_view name) const {
  const HttpHeader* header = Find(name);
  return header == nullptr ? std::string_view() : std::string_view(header->value);
}

bool HttpRequest::HasHeader(std::string_view name) const { return Find(name) != nullptr; }

HttpResponse HttpError(uint16_t status, std::string_view text) {
  return {.status = status, .headers = {{"X-Content-Type-Options", "nosniff"}}, .body = std::string(text) + "\n"};
}

HttpResponse NotFound() { return HttpError(404, "404 page not found"); }

HttpResponse MethodNotAllowed() {
  HttpResponse response = HttpError(405, "Method Not Allowed");
  response.headers.push_back({"Allow", "GET"});
  return response;
}

}  // namespace detcd::rpc
