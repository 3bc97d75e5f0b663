#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/runtime/engine_builder.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "server/config/server_config.h"

namespace quire {

// A model ready to be served: its text layer and its engine.
struct ServedModel {
  std::string name;  // in the API
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null if the model has none
  EngineInfo info;
  MemoryPlan memory;
  std::unique_ptr<EngineLoop> engine;

  // What was loaded and what was chosen, and why: the start message.
  std::string Describe() const;
};

// Loads the model that `config` names. `clock` must outlive it. Errors as OpenCheckpoint's, PlanEngine's,
// Tokenizer::Create's and BuildEngine's.
absl::StatusOr<ServedModel> LoadServedModel(const ServerConfig& config, const Clock* clock);

}  // namespace quire
