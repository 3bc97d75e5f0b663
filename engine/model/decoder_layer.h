#pragma once

#include <span>

#include "engine/base/ids.h"
#include "engine/model/model_config.h"
#include "engine/model/step_profile.h"
#include "engine/model/weights.h"
#include "engine/model/workspace.h"
#include "engine/ops/kv_layout.h"
#include "engine/ops/parallel.h"

namespace quire {

// One decoder layer over a ragged batch, in place on the residual stream:
//   h += o_proj(attention(rope(qkv_proj(norm(h)))))
//   h += down_proj(silu(gate(norm(h))) * up(norm(h)))
// Writes the batch's keys and values into their slots first. `slot_mapping` has one slot for each of the batch's
// tokens; the workspace's rope and attention are set for the batch. `profile`, on one worker, may be told the parts.
void ForwardLayer(Worker& worker, const ModelConfig& config, const LayerWeights& weights, const KvLayerView& cache,
                  std::span<const SlotId> slot_mapping, const Workspace& workspace, StepProfile* profile);

}  // namespace quire
