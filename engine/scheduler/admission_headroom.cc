#include "engine/scheduler/admission_headroom.h"

#include <algorithm>

namespace quire {

int64_t AdmissionHeadroom::num_blocks() const {
  return static_cast<int64_t>(ratio_ * static_cast<double>(num_pool_blocks_));
}

void AdmissionHeadroom::OnPreemption() { ratio_ = std::min(kMostRatio, ratio_ + kPreemptionStep); }

void AdmissionHeadroom::OnFinish() { ratio_ = std::max(kLeastRatio, ratio_ * kFinishFactor); }

}  // namespace quire
