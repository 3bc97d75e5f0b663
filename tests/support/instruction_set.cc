// Linked into a test program, holds it to the instruction set that QUIRE_TEST_INSTRUCTION_SET names, as on a processor
// that has no better one: own vector code and oneDNN's kernels both. Exits with 77, skipped, on a lesser processor.
#include <hwy/targets.h>

#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

namespace quire::testing {
namespace {

constexpr int kSkipped = 77;

struct InstructionSet {
  std::string_view name;
  int64_t vector_target;
  dnnl::cpu_isa onednn_isa;
};

constexpr InstructionSet kInstructionSets[] = {
    {"avx2", HWY_AVX2, dnnl::cpu_isa::avx2},
    {"avx512_vnni", HWY_AVX3_DL, dnnl::cpu_isa::avx512_core_vnni},
};

[[noreturn]] void Stop(int code, const char* reason, const char* name) {
  std::fprintf(stderr, "QUIRE_TEST_INSTRUCTION_SET: %s: %s\n", name, reason);
  std::exit(code);
}

void Choose(const char* name) {
  for (const InstructionSet& set : kInstructionSets) {
    if (set.name != name) continue;
    if ((hwy::SupportedTargets() & set.vector_target) == 0) Stop(kSkipped, "not on this processor", name);
    // oneDNN takes it until its first use only.
    if (dnnl::set_max_cpu_isa(set.onednn_isa) != dnnl::status::success) Stop(1, "oneDNN refuses it", name);
    hwy::SetSupportedTargetsForTest(set.vector_target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  Stop(1, "expected avx2 or avx512_vnni", name);
}

class InstructionSetChoice : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;

  void testRunStarting(const Catch::TestRunInfo&) override {
    const char* name = std::getenv("QUIRE_TEST_INSTRUCTION_SET");
    if (name != nullptr) Choose(name);
  }
};

CATCH_REGISTER_LISTENER(InstructionSetChoice)

}  // namespace
}  // namespace quire::testing
