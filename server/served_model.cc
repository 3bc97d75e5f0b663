#include "server/served_model.h"

#include <span>
#include <utility>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/base/version.h"
#include "server/serving_memory.h"

namespace quire {
namespace {

constexpr char kChatTemplateKey[] = "tokenizer.chat_template";

// Null if there is none, or none that can be used: a model without chat still serves text and token ids.
std::unique_ptr<ChatTemplate> LoadChatTemplate(const Checkpoint& checkpoint, const Tokenizer& tokenizer) {
  const absl::StatusOr<std::string> source = checkpoint.GetString(kChatTemplateKey);
  if (!source.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<ChatTemplate>> chat_template =
      ChatTemplate::Create(*source, tokenizer.bos_text(), tokenizer.eos_text());
  if (chat_template.ok()) return *std::move(chat_template);
  log::Warning("{}: chat is not available: {}", checkpoint.path(), std::string(chat_template.status().message()));
  return nullptr;
}

}  // namespace

std::string ServedModel::Describe() const {
  return StrCat("quire-server ", kVersion, "\n",                                                  //
                "  model         ", name, ": ", info.architecture, ", ", info.num_parameters,     //
                " parameters, ", info.num_layers, " layers, up to ", info.max_model_len, " of ",  //
                info.context_length, " tokens", chat_template ? "" : ", no chat template", "\n",  //
                "  weights       ", info.weight_type, "\n",                                       //
                "  compute       ", info.compute_type, ": ", info.compute_type_reason, "\n",      //
                "  KV cache      ", info.kv_cache_dtype, ", ", memory.num_blocks, " blocks of ",  //
                memory.block_size, " tokens\n",                                                   //
                "  threads       ", info.num_threads, ": ", info.num_threads_reason, "\n",        //
                memory.ToTable());
}

absl::StatusOr<ServedModel> LoadServedModel(const ServerConfig& config, const Clock* clock) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenCheckpoint(config.model));
  // Before anything is loaded: what can't fit is refused at once.
  QUIRE_ASSIGN_OR_RETURN(
      const EnginePlan plan,
      PlanEngine(*checkpoint, config.engine, MemoryAroundEngine(*checkpoint, config), PlanPurpose::kStart));
  ServedModel model;
  model.name = config.model_name();
  QUIRE_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::Create(*checkpoint));
  model.chat_template = LoadChatTemplate(*checkpoint, *model.tokenizer);
  const std::span<const TokenId> end_ids = model.tokenizer->end_of_generation_ids();
  QUIRE_ASSIGN_OR_RETURN(BuiltEngine built,
                         BuildEngine(*checkpoint, config.engine, plan, {end_ids.begin(), end_ids.end()}, clock));
  model.info = std::move(built.info);
  model.memory = built.memory;
  model.engine = std::move(built.loop);
  return model;
}

}  // namespace quire
