#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/model/model_config.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/dtype.h"

namespace quire {

struct ComputeTypeChoice {
  DType compute_type;
  std::string reason;  // why, with what was measured
};

// Which kernels read weights of `weight_type`. "auto" measures each candidate for some milliseconds on the team's
// threads, with a layer of the model's own shape at 1, 16 and 256 rows, and takes the one that is faster by the
// geometric mean; "f32" and "bf16" ask for one by name (InvalidArgument if it can't read the storage, or the processor
// can't do it).
absl::StatusOr<ComputeTypeChoice> ChooseComputeType(std::string_view requested, const ModelConfig& config,
                                                    DType weight_type, ThreadTeam& team);

}  // namespace quire
