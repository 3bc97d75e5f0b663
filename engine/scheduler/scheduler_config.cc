#include "engine/scheduler/scheduler_config.h"

#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {

absl::Status SchedulerConfig::Validate() const {
  if (max_num_batched_tokens < 1) {
    return InvalidArgument("max_num_batched_tokens", max_num_batched_tokens, "at least 1");
  }
  if (max_num_seqs < 1) return InvalidArgument("max_num_seqs", max_num_seqs, "at least 1");
  if (max_model_len < 2) {
    return InvalidArgument("max_model_len", max_model_len, "at least 2: a token of prompt and one of output");
  }
  if (max_num_logits_rows < max_num_seqs) {
    return InvalidArgument("max_num_logits_rows", max_num_logits_rows, StrCat("at least max_num_seqs, ", max_num_seqs));
  }
  if (target_step_seconds && !(*target_step_seconds > 0)) {
    return InvalidArgument("target_step_seconds", *target_step_seconds, "above 0");
  }
  if (!(priority_aging_seconds > 0))
    return InvalidArgument("priority_aging_seconds", priority_aging_seconds, "above 0");
  return absl::OkStatus();
}

}  // namespace quire
