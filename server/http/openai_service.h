#pragma once

#include <httplib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quire/v1/generation.pb.h"
#include "server/generation/generation_call.h"
#include "server/generation/request_ids.h"
#include "server/http/http_answer.h"
#include "server/http/openai_request.h"
#include "server/http/openai_response.h"
#include "server/messages/stream_memory.h"
#include "server/security/api_keys.h"

namespace quire {

// What OpenAI's API and the adapters of vLLM's server answer, over the same calls as gRPC. Handlers run on connections'
// threads, which wait there for the answer.
class OpenAiService {
 public:
  // The pointers and the pipeline's parts must outlive the service.
  OpenAiService(const GenerationPipeline& pipeline, v1::ModelInfo model, StreamMemory* stream_memory,
                RequestIds* request_ids);

  // POST /v1/chat/completions and /v1/completions, streamed or whole.
  void Complete(OpenAiKind kind, const httplib::Request& request, const Caller& caller, const nlohmann::json& body,
                httplib::Response& response);

  // GET /v1/models, and one of them.
  nlohmann::json ListModels() const;
  absl::StatusOr<nlohmann::json> GetModel(const std::string& name) const;

  // POST /tokenize: "prompt" or "messages", to "tokens". POST /detokenize: "tokens", to "prompt".
  absl::StatusOr<nlohmann::json> Tokenize(const nlohmann::json& body) const;
  absl::StatusOr<nlohmann::json> Detokenize(const nlohmann::json& body) const;

  // More values in a body fit no request to the model.
  int64_t max_json_values() const;

 private:
  class StreamedAnswer;

  absl::StatusOr<OpenAiRequest> Parse(OpenAiKind kind, const nlohmann::json& body) const;
  absl::StatusOr<std::vector<GenerationInput>> ToInputs(const OpenAiRequest& parsed, const Caller& caller,
                                                        const std::string& request_id,
                                                        const std::string& trace_id) const;
  absl::StatusOr<std::vector<TokenId>> EncodeOnTextThread(Prompt prompt) const;

  const GenerationPipeline pipeline_;
  const v1::ModelInfo model_;
  const int64_t created_seconds_;  // when the model was loaded, in Unix time
  StreamMemory* const stream_memory_;
  RequestIds* const request_ids_;
};

}  // namespace quire
