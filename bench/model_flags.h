#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/runtime/engine_config.h"

namespace quire {

// What every command that runs a model is told.
struct ModelFlags {
  std::string model;  // path
  EngineConfig engine;
  bool json = false;
};

// --model, the types, --threads and --json. The engine checks the types' values, so that what it learns is known here.
void AddModelFlags(CLI::App& app, ModelFlags& flags);

// Prints "quire-bench: ..." to standard error; the exit code of a command that failed.
int ReportFailure(const absl::Status& status);
int ReportUnknownCommand(std::string_view command);

}  // namespace quire
