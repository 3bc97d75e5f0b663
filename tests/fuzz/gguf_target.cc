// Model files, as far as a start reads them before it loads weights.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/describe_checkpoint.h"
#include "engine/model/model_config.h"
#include "engine/runtime/engine_plan.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "server/memory_file.h"
#include "server/serving_memory.h"
#include "tests/fuzz/fuzz_target.h"

namespace quire::testing {
namespace {

constexpr std::string_view kStages[] = {"opened", "planned", "with a tokenizer"};
constexpr std::string_view kWords[] = {"llama.block_count",
                                       "llama.context_length",
                                       "llama.embedding_length",
                                       "llama.attention.head_count",
                                       "llama.attention.key_length",
                                       "llama.rope.dimension_count",
                                       "rope_freqs.weight",
                                       "output.weight",
                                       "token_embd.weight",
                                       "blk.0.attn_q.weight",
                                       "general.alignment",
                                       "tokenizer.ggml.tokens",
                                       "tokenizer.ggml.merges",
                                       "tokenizer.ggml.scores",
                                       "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.bos_token_id",
                                       "tokenizer.chat_template",
                                       "gpt2",
                                       "llama",
                                       "GGUF",
                                       "\x1b[2J\n"};

class ModelFiles final : public FuzzTarget {
 public:
  ModelFiles() {
    config_.engine.memory_budget_bytes = int64_t{1} << 30;
    config_.engine.max_queued_tokens = 1 << 16;
  }

  size_t Run(std::string_view input) override {
    QUIRE_CHECK(file_->Write(input).ok());
    const auto opened = OpenCheckpoint(file_->path());
    if (!opened.ok()) {
      QUIRE_CHECK(opened.status().code() == absl::StatusCode::kInvalidArgument);
      return 0;
    }
    const Checkpoint& checkpoint = **opened;
    DescribeCheckpoint(checkpoint);
    ReadTensors(checkpoint);
    const bool has_tokenizer = TryText(checkpoint);
    const auto plan =
        PlanEngine(checkpoint, config_.engine, MemoryAroundEngine(checkpoint, config_), PlanPurpose::kAsk);
    if (!plan.ok()) return 1;
    return has_tokenizer ? 3 : 2;
  }

 private:
  // All bytes lie in the file, as they did when it was opened.
  static void ReadTensors(const Checkpoint& checkpoint) {
    for (const CheckpointTensor& tensor : checkpoint.tensors()) {
      std::vector<std::byte> bytes(static_cast<size_t>(tensor.num_bytes));
      QUIRE_CHECK(checkpoint.ReadTensor(tensor, 0, bytes).ok());
      std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
      Dequantize(tensor.type, bytes, values);
    }
  }

  static bool TryText(const Checkpoint& checkpoint) {
    const auto tokenizer = Tokenizer::Create(checkpoint);
    if (!tokenizer.ok()) return false;
    QUIRE_CHECK((*tokenizer)->Encode("hello world", /*parse_special=*/true, /*add_bos=*/true).ok());
    const auto source = checkpoint.GetString("tokenizer.chat_template");
    if (source.ok()) {
      ChatTemplate::Create(*source, (*tokenizer)->bos_text(), (*tokenizer)->eos_text()).status().IgnoreError();
    }
    return true;
  }

  ServerConfig config_;
  const std::unique_ptr<MemoryFile> file_ = MemoryFile::Create().value();
};

}  // namespace

FuzzTargetKind GgufTarget() {
  return {"gguf", kStages, kWords, [] { return std::make_unique<ModelFiles>(); }};
}

}  // namespace quire::testing
