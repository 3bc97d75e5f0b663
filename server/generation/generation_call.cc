#include "server/generation/generation_call.h"

#include <algorithm>
#include <format>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/base/log.h"
#include "engine/base/status.h"

namespace quire {

std::shared_ptr<GenerationCall> GenerationCall::Start(const GenerationPipeline& pipeline, GenerationInput input,
                                                      std::shared_ptr<GenerationListener> listener) {
  std::shared_ptr<GenerationCall> call(new GenerationCall(pipeline, std::move(input), std::move(listener)));
  const absl::Status queued =
      pipeline.text_executor->PostEncode(BytesOf(call->input_.prompt), [call] { call->EncodePrompt(); });
  if (!queued.ok()) call->strand_->Post([call, queued] { call->EndBeforeEngine(queued); });
  return call;
}

GenerationCall::GenerationCall(const GenerationPipeline& pipeline, GenerationInput input,
                               std::shared_ptr<GenerationListener> listener)
    : pipeline_(pipeline),
      strand_(pipeline.text_executor->NewStrand()),
      input_(std::move(input)),
      listener_(std::move(listener)),
      detokenizer_(pipeline.tokenizer, input_.sampling.stop_strings) {}

void GenerationCall::Cancel() {
  if (cancelled_.exchange(true)) return;
  strand_->Post([self = shared_from_this()] { self->TakeCancel(); });
}

void GenerationCall::OnPromptLogprobs(std::vector<PositionLogprobs> logprobs) {
  strand_->Post([self = shared_from_this(), logprobs = std::move(logprobs)]() mutable {
    if (self->listener_) self->Deliver({.text = {}, .tokens = {}, .prompt_logprobs = std::move(logprobs)});
  });
}

void GenerationCall::OnTokens(std::vector<OutputToken> tokens) {
  strand_->Post(
      [self = shared_from_this(), tokens = std::move(tokens)]() mutable { self->TakeTokens(std::move(tokens)); });
}

void GenerationCall::OnFinish(const GenerationResult& result) {
  strand_->Post([self = shared_from_this(), result] { self->TakeResult(result); });
}

// Reads nothing that the strand may write: the strand leaves `input_.prompt` alone until this has posted to it.
void GenerationCall::EncodePrompt() {
  absl::StatusOr<std::vector<TokenId>> ids = StatusOfCancel();
  const bool past_deadline = input_.deadline && *input_.deadline <= pipeline_.clock->Now();
  if (!cancelled_ && !past_deadline) ids = pipeline_.prompt_encoder->Encode(input_.prompt);
  if (pipeline_.log_prompts && ids.ok()) LogPrompt(*ids);
  strand_->Post([self = shared_from_this(), ids = std::move(ids)]() mutable {
    if (!ids.ok()) return self->EndBeforeEngine(ids.status());
    self->Submit(*std::move(ids));
  });
}

// Submitting on the strand puts OnStarted before everything that the engine's thread will post.
void GenerationCall::Submit(std::vector<TokenId> prompt_token_ids) {
  if (!listener_) return;  // cancelled meanwhile
  num_prompt_tokens_ = static_cast<int64_t>(prompt_token_ids.size());
  GenerationRequest request;
  request.label = input_.request_id;
  request.tenant = input_.tenant;
  request.priority = input_.priority;
  request.cache_salt = input_.cache_salt;
  request.skip_reading_prefix_cache = input_.skip_reading_prefix_cache;
  request.prompt_token_ids = std::move(prompt_token_ids);
  request.sampling = input_.sampling;
  request.deadline = input_.deadline;
  request.arrival_time = input_.arrival_time;
  request.sink = shared_from_this();
  const absl::StatusOr<RequestId> id = pipeline_.engine->Submit(std::move(request));
  if (!id.ok()) return EndBeforeEngine(id.status());
  engine_id_ = *id;
  pipeline_.rate_limiter->CountTokens(input_.tenant, num_prompt_tokens_);
  listener_->OnStarted(num_prompt_tokens_);
}

void GenerationCall::TakeTokens(std::vector<OutputToken> tokens) {
  // Tokens past a stop string, or past the caller's interest, are not part of the answer.
  if (cancelled_ || !refusal_.ok() || detokenizer_.stopped()) return;
  ObserveTokens();
  GenerationChunk chunk;
  size_t num_taken = 0;  // of `tokens`
  while (num_taken < tokens.size() && !detokenizer_.stopped()) {
    const TokenId id = tokens[num_taken++].token_id;
    if (!IsStopToken(id)) chunk.text += TextOf(id);
  }
  tokens.resize(num_taken);
  num_output_tokens_ += static_cast<int64_t>(num_taken);
  pipeline_.rate_limiter->CountTokens(input_.tenant, static_cast<int64_t>(num_taken));
  if (detokenizer_.stopped()) {
    pipeline_.engine->Finish(*engine_id_, FinishReason::kStopString, num_output_tokens_);
  }
  chunk.tokens = std::move(tokens);
  Deliver(std::move(chunk));
}

void GenerationCall::ObserveTokens() {
  const TimePoint now = pipeline_.clock->Now();
  if (last_tokens_time_) {
    pipeline_.metrics->ObserveTokenGap(ToSeconds(now - *last_tokens_time_));
  } else {
    pipeline_.metrics->ObserveFirstToken(ToSeconds(now - input_.arrival_time), num_prompt_tokens_);
  }
  last_tokens_time_ = now;
}

void GenerationCall::Deliver(GenerationChunk chunk) {
  if (!refusal_.ok()) return;
  refusal_ = listener_->OnChunk(std::move(chunk));
  if (!refusal_.ok()) pipeline_.engine->Cancel(*engine_id_, refusal_);
}

// The detokenizer leaves special tokens out. No character and no stop string goes across one, so what is held back
// can be given out before it.
std::string GenerationCall::TextOf(TokenId id) {
  if (!input_.include_special_tokens || !pipeline_.tokenizer->IsSpecial(id)) return detokenizer_.Append(id);
  return detokenizer_.Flush() + pipeline_.tokenizer->TokenBytes(id);
}

void GenerationCall::TakeResult(GenerationResult result) {
  if (refusal_.ok() && detokenizer_.stopped()) {
    // The engine may have ended the request for another reason before it heard of the stop string.
    result.status = absl::OkStatus();
    result.finish_reason = FinishReason::kStopString;
    result.num_output_tokens = num_output_tokens_;
  } else if (!cancelled_) {
    // A deadline ends with what was made so far, too.
    std::string rest = detokenizer_.Flush();
    if (!rest.empty()) Deliver({.text = std::move(rest), .tokens = {}, .prompt_logprobs = {}});
  }
  if (!refusal_.ok()) {
    // The engine may have ended it well meanwhile; what is missing from the answer is missing all the same.
    result.status = refusal_;
    result.finish_reason = FinishReason::kUnspecified;
  }
  pipeline_.metrics->ObserveEnd(result);
  End(result);
}

void GenerationCall::TakeCancel() {
  if (!listener_) return;
  // The engine's OnFinish ends the call once its blocks are free.
  if (engine_id_) return pipeline_.engine->Cancel(*engine_id_, StatusOfCancel());
  EndBeforeEngine(StatusOfCancel());
}

void GenerationCall::EndBeforeEngine(absl::Status status) {
  if (!listener_) return;
  pipeline_.metrics->CountRefusal(status);
  GenerationResult result;
  result.status = std::move(status);
  result.num_prompt_tokens = num_prompt_tokens_;
  result.timings.total_seconds = ToSeconds(pipeline_.clock->Now() - input_.arrival_time);
  End(result);
}

void GenerationCall::End(const GenerationResult& result) {
  LogEnd(result);
  std::exchange(listener_, nullptr)->OnFinished(result);
}

bool GenerationCall::IsStopToken(TokenId id) const {
  const std::vector<TokenId>& asked = input_.sampling.stop_token_ids;
  if (std::find(asked.begin(), asked.end(), id) != asked.end()) return true;
  const std::span<const TokenId> ends = pipeline_.tokenizer->end_of_generation_ids();
  return !input_.sampling.ignore_eos && std::binary_search(ends.begin(), ends.end(), id);
}

absl::Status GenerationCall::StatusOfCancel() const {
  if (input_.deadline && *input_.deadline <= pipeline_.clock->Now()) {
    return absl::DeadlineExceededError("the call's deadline has passed");
  }
  return absl::CancelledError("the caller cancelled the call");
}

void GenerationCall::LogPrompt(const std::vector<TokenId>& ids) const {
  const absl::StatusOr<std::string> text = pipeline_.tokenizer->Decode(ids, /*with_special=*/true);
  if (text.ok()) log::Info("request {}: prompt: {}", input_.request_id, *text);
}

// Ids and tenants come from callers: escaped, so that none can write a line of its own. Never any text.
void GenerationCall::LogEnd(const GenerationResult& result) const {
  const std::string id = absl::Utf8SafeCEscape(input_.request_id);
  const std::string tenant = absl::Utf8SafeCEscape(input_.tenant);
  const std::string end =
      result.status.ok() ? std::string(ToString(result.finish_reason)) : absl::StatusCodeToString(result.status.code());
  const GenerationTimings& timings = result.timings;
  std::string text = std::format(
      "request {} tenant {}: {} prompt + {} output tokens, queue {:.3f} s, first token {:.3f} s, total {:.3f} s, "
      "{} preemptions, {}",
      id, tenant, result.num_prompt_tokens, result.num_output_tokens, timings.queue_seconds,
      timings.time_to_first_token_seconds, timings.total_seconds, result.num_preemptions, end);
  if (!result.status.ok()) text += StrCat(": ", std::string(result.status.message()));
  if (!input_.trace_id.empty()) text += StrCat(", trace ", input_.trace_id);
  log::Event("request ended", text,
             {{"request_id", id},
              {"trace_id", input_.trace_id},
              {"tenant", tenant},
              {"end", end},
              {"error", std::string(result.status.message())},
              {"prompt_tokens", result.num_prompt_tokens},
              {"cached_prompt_tokens", result.num_cached_prompt_tokens},
              {"output_tokens", result.num_output_tokens},
              {"preemptions", result.num_preemptions},
              {"queue_seconds", timings.queue_seconds},
              {"first_token_seconds", timings.time_to_first_token_seconds},
              {"total_seconds", timings.total_seconds}});
}

}  // namespace quire
