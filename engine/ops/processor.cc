#include "engine/ops/processor.h"

#include <hwy/targets.h>
#include <hwy/timer.h>

#include <array>
#include <format>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

namespace quire {
namespace {

constexpr size_t kMostNameBytes = 100;  // what GetCpuString may write

std::string ProcessorName() {
  std::array<char, kMostNameBytes> name = {};
  if (!hwy::platform::GetCpuString(name.data())) return "unnamed processor";
  return name.data();
}

}  // namespace

std::string DescribeProcessor() {
  // The best target is the lowest bit.
  const int64_t targets = hwy::SupportedTargets();
  return std::format("{}, {}, oneDNN {:#x}", ProcessorName(), hwy::TargetName(targets & -targets),
                     static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

}  // namespace quire
