#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/ids.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/forward_batch.h"
#include "engine/runtime/engine_config.h"

namespace quire {

// The text is cut into windows; each is computed from its first token on, and its second half is scored.
struct WindowPlan {
  int64_t window_tokens = 512;
  int64_t step_tokens = 256;  // computed at once

  int64_t first_scored() const { return window_tokens / 2; }
  // The last token has no successor to score.
  int64_t num_scored() const { return window_tokens - 1 - first_scored(); }
};

// A decoder of given types that says what it thinks of windows of text.
class TextScorer {
 public:
  // Errors as PlanEngine's and LoadDecoder's; InvalidArgument if the model's context is shorter than a window.
  static absl::StatusOr<TextScorer> Load(const Checkpoint& checkpoint, const EngineConfig& config,
                                         const WindowPlan& plan);

  // Calls visit(first_row, logits [num_rows, vocab_size]) for the scored positions of a window of plan.window_tokens,
  // in order: row 0 is position plan.first_scored(). The logits are valid during the call.
  void Score(std::span<const TokenId> window, const std::function<void(int64_t, MatrixView<float>)>& visit);

  const std::string& types() const { return types_; }  // "weights bf16, computed in bf16 (asked for), KV cache bf16"
  int64_t vocab_size() const { return decoder_->config().vocab_size; }

 private:
  TextScorer(std::unique_ptr<Decoder> decoder, const WindowPlan& plan, int64_t num_blocks);

  // The batch of positions [begin, end).
  void SetBatch(std::span<const TokenId> window, int64_t begin, int64_t end);

  std::unique_ptr<Decoder> decoder_;
  WindowPlan plan_;
  ForwardBatch batch_;
  std::string types_;
};

}  // namespace quire
