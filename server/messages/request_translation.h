#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/base/generation_types.h"
#include "quire/v1/generation.pb.h"
#include "server/generation/prompt_encoder.h"

namespace quire {

// From the API's messages to the engine's types. Pure. What depends on the model (token ids, lengths, ranges of
// sampling parameters) is checked by PromptEncoder and by the engine; errors name the request's field.

// Of GenerateRequest or TokenizeRequest: exactly one input must be set.
absl::StatusOr<Prompt> ToPrompt(const v1::GenerateRequest& request);
absl::StatusOr<Prompt> ToPrompt(const v1::TokenizeRequest& request);

SamplingParams ToSamplingParams(const v1::SamplingParams& params);

// The earlier of the call's own deadline and `timeout_seconds` after `arrival`.
absl::StatusOr<std::optional<TimePoint>> ToDeadline(std::optional<double> timeout_seconds, TimePoint arrival,
                                                    std::optional<TimePoint> call_deadline);

// At most 256 bytes of UTF-8 without control characters; empty is fine.
absl::Status CheckRequestId(std::string_view request_id);

// OK for an empty name and for `served_model_name`; NOT_FOUND for another.
absl::Status CheckModelName(std::string_view asked, std::string_view served_model_name);

}  // namespace quire
