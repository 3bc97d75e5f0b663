// A configuration file, as far as a start follows it before anything is loaded.
#include <string>

#include "engine/base/check.h"
#include "engine/runtime/engine_plan.h"
#include "server/config/server_config.h"
#include "server/serving_memory.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_text_layer.h"

namespace quire::testing {
namespace {

constexpr std::string_view kStages[] = {"applied", "planned"};
constexpr std::string_view kWords[] = {"\"auto\"",
                                       "\"int8\"",
                                       "\"2GiB\"",
                                       "\"1e18TiB\"",
                                       "true",
                                       "false",
                                       "null",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       ",",
                                       ":",
                                       "//",
                                       "/*",
                                       "\"*\":",
                                       "\"weight\":",
                                       "\\ud800",
                                       "\"max_model_len\":",
                                       "\"tenants\":",
                                       "\"memory_budget\":",
                                       "\"max_num_seqs\":",
                                       "\"max_queued_tokens\":",
                                       "\"max_queued_requests\":",
                                       "\"http_listen\":"};

class ConfigFile final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    ServerConfig config;
    if (!ApplyConfigText(std::string(input), "fuzz.json", &config).ok()) return 0;
    // What --print-config prints is that configuration again.
    ServerConfig again;
    QUIRE_CHECK(ApplyConfigText(config.ToJson(), "printed.json", &again).ok());
    QUIRE_CHECK(again.ToJson() == config.ToJson());
    const Checkpoint& checkpoint = model_.checkpoint();
    const auto plan = PlanEngine(checkpoint, config.engine, MemoryAroundEngine(checkpoint, config), PlanPurpose::kAsk);
    if (!plan.ok()) return 1;
    QUIRE_CHECK(plan->memory.num_blocks > 0);
    return 2;
  }

 private:
  TinyTextLayer model_;
};

}  // namespace

FuzzTargetKind ConfigTarget() {
  return {"config", kStages, kWords, [] { return std::make_unique<ConfigFile>(); }};
}

}  // namespace quire::testing
