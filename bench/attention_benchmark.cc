// Paged attention as the decoder calls it, over caches too large for the processor's own: prefill of one whole prompt
// and decode of a batch, for head shapes of models of 135 M and 1 B parameters. The KV bytes a second are those that a
// decode step must read; the operations are the causal ones only.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/math.h"
#include "engine/ops/kv_write.h"
#include "engine/ops/paged_attention.h"

namespace quire {
namespace {

constexpr int64_t kBlockSize = 16;
// Layers take turns until their caches hold this together.
constexpr int64_t kCacheBytes = int64_t{512} << 20;
constexpr int64_t kMaxLayers = 32;

struct Heads {
  const char* name;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
};

struct Step {
  int64_t num_seqs;
  int64_t context;
  int64_t num_queries;  // of each sequence
};

std::vector<float> RandomValues(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

class AttentionStep {
 public:
  // Throws where this processor has no kernels for the type of the prompts' matmuls.
  AttentionStep(const Heads& heads, const Step& step, DType kv_type, DType matmul_type, int64_t num_threads)
      : heads_(heads),
        step_(step),
        config_{.num_heads = heads.num_heads,
                .layout = {heads.num_kv_heads, heads.head_dim, kBlockSize, kv_type},
                .score_scale = 1.0F / std::sqrt(static_cast<float>(heads.head_dim)),
                .max_seq_len = step.context,
                .max_num_seqs = step.num_seqs,
                .max_tokens = step.num_seqs * step.num_queries,
                .num_threads = num_threads},
        num_blocks_(step.num_seqs * CeilDiv(step.context, kBlockSize)),
        num_layers_(std::clamp<int64_t>(kCacheBytes / LayerBytes(), 1, kMaxLayers)),
        cache_(num_layers_ * LayerBytes()),
        team_(num_threads, PagedAttention::ScratchBytesFor(config_)),
        attention_(config_),
        queries_(RandomValues(num_tokens() * q_size())),
        out_(num_tokens(), q_size(), InputForms{}),
        seq_lens_(step.num_seqs, step.context),
        block_tables_(num_blocks_) {
    if (!attention_.UseMatmuls(matmul_type)) throw std::runtime_error("no matmuls of this type here");
    for (int64_t seq = 0; seq <= step.num_seqs; ++seq) query_start_loc_.push_back(seq * step.num_queries);
    std::iota(block_tables_.begin(), block_tables_.end(), 0);
    std::shuffle(block_tables_.begin(), block_tables_.end(), std::mt19937(1));
    FillCache();
    attention_.SetBatch({query_start_loc_, seq_lens_, block_tables_.data(), CeilDiv(step.context, kBlockSize)});
  }

  void Run() {
    layer_ = (layer_ + 1) % num_layers_;
    team_.Run([&](Worker& worker) {
      attention_.Forward(worker, Layer(layer_), MatrixView<const float>(queries_.data(), num_tokens(), q_size()), out_);
    });
  }

  int64_t LayerBytes() const { return num_blocks_ * config_.layout.BytesPerBlock(); }

  double Operations() const {
    const double last = static_cast<double>(step_.context);
    const double first = last - static_cast<double>(step_.num_queries) + 1;
    const double pairs = static_cast<double>(num_tokens()) * (first + last) / 2;
    return 4.0 * pairs * static_cast<double>(q_size());
  }

 private:
  int64_t num_tokens() const { return step_.num_seqs * step_.num_queries; }
  int64_t q_size() const { return heads_.num_heads * heads_.head_dim; }

  KvLayerView Layer(int64_t layer) const {
    std::byte* keys = cache_.data() + layer * LayerBytes();
    return {config_.layout, keys, keys + LayerBytes() / 2};
  }

  void FillCache() const {
    const int64_t kv_size = heads_.num_kv_heads * heads_.head_dim;
    const std::vector<float> rows = RandomValues(2 * kv_size + 512);
    for (int64_t layer = 0; layer < num_layers_; ++layer) {
      for (SlotId slot = 0; slot < num_blocks_ * kBlockSize; ++slot) {
        WriteKv(Layer(layer), slot, rows.data() + slot % 512, rows.data() + kv_size + slot % 511);
      }
    }
  }

  Heads heads_;
  Step step_;
  AttentionConfig config_;
  int64_t num_blocks_;
  int64_t num_layers_;
  Buffer cache_;
  ThreadTeam team_;
  PagedAttention attention_;
  std::vector<float> queries_;
  Activation out_;
  std::vector<int64_t> query_start_loc_;
  std::vector<int64_t> seq_lens_;
  std::vector<BlockId> block_tables_;
  int64_t layer_ = 0;
};

void Attention(benchmark::State& state, const Heads& heads, const Step& step, DType kv_type, DType matmul_type,
               int64_t num_threads) {
  AttentionStep attention(heads, step, kv_type, matmul_type, num_threads);
  for (auto _ : state) attention.Run();
  const auto per_second = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(attention.Operations() / 1e9, per_second);
  state.counters["KV GB/s"] = benchmark::Counter(static_cast<double>(attention.LayerBytes()) / 1e9, per_second);
}

void Register(const Heads& heads, const Step& step, DType kv_type, DType matmul_type, int64_t num_threads) {
  const std::string name =
      step.num_queries > 1 ? "prefill/" + std::to_string(step.num_queries) + "/" + std::string(ToString(matmul_type))
                           : "decode/" + std::to_string(step.num_seqs) + "x" + std::to_string(step.context);
  benchmark::RegisterBenchmark(
      (name + "/" + heads.name + "/" + std::string(ToString(kv_type)) + "/threads:" + std::to_string(num_threads))
          .c_str(),
      [=](benchmark::State& state) { Attention(state, heads, step, kv_type, matmul_type, num_threads); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void RegisterAll() {
  const Heads kHeads[] = {{"9:3x64", 9, 3, 64}, {"32:8x64", 32, 8, 64}, {"32:8x128", 32, 8, 128}};
  for (const Heads& heads : kHeads) {
    for (const DType kv_type : {DType::kF32, DType::kBF16, DType::kInt8}) {
      for (const int64_t num_threads : {1, 2}) {
        for (const int64_t prompt : {512, 2048}) {
          Register(heads, {1, prompt, prompt}, kv_type, DType::kF32, num_threads);
          if (kv_type != DType::kF32) Register(heads, {1, prompt, prompt}, kv_type, DType::kBF16, num_threads);
        }
        for (const int64_t num_seqs : {1, 16, 32}) {
          for (const int64_t context : {512, 1024, 4096}) {
            Register(heads, {num_seqs, context, 1}, kv_type, DType::kF32, num_threads);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
