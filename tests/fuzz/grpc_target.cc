// Serialized requests, as gRPC hands them over. The first byte says of which kind.
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "engine/sampling/sampling_params.h"
#include "quire/v1/cache.pb.h"
#include "quire/v1/generation.pb.h"
#include "server/kserve/infer_request.h"
#include "server/messages/request_translation.h"
#include "server/messages/wire_parsing.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_text_layer.h"

namespace quire::testing {
namespace {

constexpr std::string_view kStages[] = {"parsed", "translated", "encoded"};
constexpr std::string_view kWords[] = {"\x0a",
                                       "\x12",
                                       "\x1a",
                                       "\x22",
                                       "\x0a\x04user",
                                       "\x12\x00",
                                       "\x0b\x0c",
                                       "\xff\xff\xff\xff\x0f",
                                       "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                       "system",
                                       "<|im_end|>",
                                       "\xEF\xBF\xBD",
                                       "\xC3",
                                       "\xED\xA0\x80"};

class GrpcRequests final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    if (input.empty()) return 0;
    const std::string bytes(input.substr(1));
    switch (static_cast<uint8_t>(input.front()) % 5) {
      case 0: return TryGenerate(bytes);
      case 1: return TryTokenize(bytes);
      case 2: return TryDetokenize(bytes);
      case 3: return Parse<v1::GetCacheStatsRequest>(bytes) ? 1 : 0;
      default: return TryInfer(bytes);
    }
  }

 private:
  // A message that is accepted can be passed on.
  template <typename Message>
  static std::optional<Message> Parse(const std::string& bytes) {
    Message message;
    if (!ParseMessage(bytes, &message).ok()) return std::nullopt;
    Message again;
    QUIRE_CHECK(ParseMessage(message.SerializeAsString(), &again).ok());
    return message;
  }

  size_t TryGenerate(const std::string& bytes) const {
    const auto request = Parse<v1::GenerateRequest>(bytes);
    if (!request) return 0;
    CheckModelName(request->model(), "tiny").IgnoreError();
    const auto timeout = request->has_timeout_seconds() ? std::optional(request->timeout_seconds()) : std::nullopt;
    if (!CheckRequestId(request->request_id()).ok() || !ToDeadline(timeout, TimePoint(), std::nullopt).ok()) return 1;
    const SamplingParams sampling = ToSamplingParams(request->sampling());
    if (!ValidateSamplingParams(sampling, model_.tokenizer().vocab_size()).ok()) return 1;
    return TryPrompt(ToPrompt(*request));
  }

  size_t TryTokenize(const std::string& bytes) const {
    const auto request = Parse<v1::TokenizeRequest>(bytes);
    return request ? TryPrompt(ToPrompt(*request)) : 0;
  }

  size_t TryPrompt(const absl::StatusOr<Prompt>& prompt) const {
    if (!prompt.ok()) return 1;
    return model_.Takes(*prompt) ? 3 : 2;
  }

  size_t TryDetokenize(const std::string& bytes) const {
    const auto request = Parse<v1::DetokenizeRequest>(bytes);
    if (!request) return 0;
    const std::vector<TokenId> ids(request->token_ids().begin(), request->token_ids().end());
    return model_.tokenizer().Decode(ids, request->include_special_tokens()).ok() ? 3 : 1;
  }

  size_t TryInfer(const std::string& bytes) const {
    const auto request = Parse<inference::ModelInferRequest>(bytes);
    if (!request) return 0;
    const auto parsed = ParseInferRequest(*request);
    return parsed.ok() ? TryPrompt(TextPrompt{.text = parsed->text}) : 1;
  }

  TinyTextLayer model_;
};

}  // namespace

FuzzTargetKind GrpcTarget() {
  return {"grpc", kStages, kWords, [] { return std::make_unique<GrpcRequests>(); }};
}

}  // namespace quire::testing
