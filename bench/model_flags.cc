#include "bench/model_flags.h"

#include <cstdio>

#include "engine/base/status.h"

namespace quire {

void AddModelFlags(CLI::App& app, ModelFlags& flags) {
  EngineConfig& engine = flags.engine;
  app.add_option("--model", flags.model, "GGUF file")->required();
  app.add_option("--weight-type", engine.weight_type, "How weights are stored, as quire-server takes it")
      ->capture_default_str();
  app.add_option("--compute-type", engine.compute_type, "What linear layers compute in, as quire-server takes it")
      ->capture_default_str();
  app.add_option("--kv-cache-dtype", engine.kv_cache_dtype, "Of keys and values, as quire-server takes it")
      ->capture_default_str();
  app.add_flag("--deterministic", engine.deterministic, "Kernels that do not depend on the size of a batch");
  app.add_option("--threads", engine.num_threads, "Compute threads (default: as the server chooses)");
  app.add_flag("--json", flags.json, "Print a JSON object instead of a table");
}

int ReportFailure(const absl::Status& status) {
  std::fprintf(stderr, "quire-bench: %s\n", std::string(status.message()).c_str());
  return 2;
}

int ReportUnknownCommand(std::string_view command) {
  return ReportFailure(InvalidArgument("command", StrCat("'", command, "'"),
                                       "accuracy, decode, mixed, prefill, probe, simulate or speed"));
}

}  // namespace quire
