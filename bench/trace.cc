#include "bench/trace.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

constexpr uint64_t kVocabSize = 49152;

// The finalizer of SplitMix64: every bit of the input changes about half of the output's.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Whose text it is. Three kinds of ids that must not meet: prefixes, conversations, single requests.
uint64_t TextKey(uint64_t kind, int64_t id) { return Mix(static_cast<uint64_t>(id) * 4 + kind); }

absl::Status CheckRequest(const TraceRequest& request) {
  if (request.arrival_seconds < 0) return InvalidArgument("arrival_seconds", request.arrival_seconds, "at least 0");
  if (request.prompt_tokens < 1) return InvalidArgument("prompt_tokens", request.prompt_tokens, "at least 1");
  if (request.output_tokens < 1) return InvalidArgument("output_tokens", request.output_tokens, "at least 1");
  if (request.prefix_tokens < 0 || request.prefix_tokens > request.prompt_tokens) {
    return InvalidArgument("prefix_tokens", request.prefix_tokens, "at least 0 and at most prompt_tokens");
  }
  return absl::OkStatus();
}

absl::StatusOr<TraceRequest> ParseRequest(const std::string& line) {
  TraceRequest request;
  // The only exceptions that JSON throws; they say what was wrong.
  try {
    const nlohmann::json object = nlohmann::json::parse(line);
    object.at("arrival_seconds").get_to(request.arrival_seconds);
    object.at("prompt_tokens").get_to(request.prompt_tokens);
    object.at("output_tokens").get_to(request.output_tokens);
    request.tenant = object.value("tenant", request.tenant);
    request.priority = object.value("priority", request.priority);
    request.prefix_id = object.value("prefix_id", request.prefix_id);
    request.prefix_tokens = object.value("prefix_tokens", request.prefix_tokens);
    if (object.contains("conversation_id")) request.conversation_id = object["conversation_id"].get<int64_t>();
    if (object.contains("cancel_after_seconds")) {
      request.cancel_after_seconds = object["cancel_after_seconds"].get<double>();
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  QUIRE_RETURN_IF_ERROR(CheckRequest(request));
  return request;
}

nlohmann::json ToJson(const TraceRequest& request) {
  nlohmann::json object = {{"arrival_seconds", request.arrival_seconds},
                           {"tenant", request.tenant},
                           {"prompt_tokens", request.prompt_tokens},
                           {"output_tokens", request.output_tokens},
                           {"priority", request.priority},
                           {"prefix_id", request.prefix_id},
                           {"prefix_tokens", request.prefix_tokens}};
  if (request.conversation_id) object["conversation_id"] = *request.conversation_id;
  if (request.cancel_after_seconds) object["cancel_after_seconds"] = *request.cancel_after_seconds;
  return object;
}

}  // namespace

TokenId TokenAt(const TraceRequest& request, int64_t index, int64_t position) {
  uint64_t key = 0;
  if (position < request.prefix_tokens) {
    key = TextKey(1, request.prefix_id);
  } else if (request.conversation_id) {
    key = TextKey(2, *request.conversation_id);
  } else {
    key = TextKey(3, index);
  }
  return static_cast<TokenId>(Mix(key + static_cast<uint64_t>(position)) % kVocabSize);
}

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(StrCat("trace ", path, ": it can't be opened"));
  Trace trace;
  int64_t line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    if (line.empty()) continue;
    absl::StatusOr<TraceRequest> request = ParseRequest(line);
    if (!request.ok()) {
      return absl::InvalidArgumentError(
          StrCat("trace ", path, ", line ", line_number, ": ", std::string(request.status().message())));
    }
    trace.push_back(*std::move(request));
  }
  if (trace.empty()) return absl::InvalidArgumentError(StrCat("trace ", path, ": it holds no request"));
  std::stable_sort(trace.begin(), trace.end(),
                   [](const TraceRequest& a, const TraceRequest& b) { return a.arrival_seconds < b.arrival_seconds; });
  return trace;
}

absl::Status WriteTrace(const Trace& trace, const std::string& path) {
  std::ofstream file(path);
  for (const TraceRequest& request : trace) file << ToJson(request).dump() << '\n';
  file.flush();
  if (!file) return absl::UnavailableError(StrCat("trace ", path, ": it can't be written"));
  return absl::OkStatus();
}

}  // namespace quire
