#include "engine/model/kernel_choice.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <format>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/base/log.h"
#include "engine/base/math.h"
#include "engine/base/status.h"

namespace quire {
namespace {

// One kind of linear layer, with what stands around it in a step.
struct Site {
  std::string_view name;
  const PackedLinear* linear;  // of the first layer with these kernels
  Activation* input;
  std::function<void(Worker&, int64_t rows)> forward;
};

std::vector<Site> SitesOf(const LinearKernels& kernels, const ModelWeights& weights, Workspace& workspace) {
  std::vector<Site> sites;
  const auto add = [&](std::string_view name, const PackedLinear& linear, Activation& input, auto forward) {
    const bool known = std::ranges::any_of(sites, [&](const Site& site) { return site.name == name; });
    if (&linear.kernels() == &kernels && !known) sites.push_back({name, &linear, &input, forward});
  };
  const auto to = [&](const PackedLinear& linear, Activation& input, auto output) {
    return [&, output](Worker& worker, int64_t rows) { linear.Forward(worker, input, (workspace.*output)(rows)); };
  };
  for (const LayerWeights& layer : weights.layers) {
    add("qkv", layer.qkv_proj, workspace.normed, to(layer.qkv_proj, workspace.normed, &Workspace::qkv));
    add("o", layer.o_proj, workspace.attended, to(layer.o_proj, workspace.attended, &Workspace::hidden));
    add("gate/up", layer.gate_up_proj, workspace.normed, [&](Worker& worker, int64_t rows) {
      layer.gate_up_proj.ForwardSiluMul(worker, workspace.normed, rows, workspace.gated);
    });
    add("down", layer.down_proj, workspace.gated, to(layer.down_proj, workspace.gated, &Workspace::hidden));
  }
  add("head", weights.lm_head, workspace.head_input, to(weights.lm_head, workspace.head_input, &Workspace::logits));
  return sites;
}

// Seconds for each bucket of rows.
using Times = std::vector<double>;

using Work = std::function<void(Worker&)>;

double MeasureOnce(const Work& work, ThreadTeam& team) {
  const auto start = std::chrono::steady_clock::now();
  team.Run([&](Worker& worker) {
    work(worker);
    Brgemm::ReleaseThread();
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of several runs, repeated until another one comes close to it: a neighbour on the processor must not decide.
double Measure(const Work& work, ThreadTeam& team) {
  constexpr double kCloseRatio = 1.15;
  constexpr double kLongSeconds = 0.01;  // tells kernels apart without much repetition
  double best = std::numeric_limits<double>::infinity();
  double second = best;
  for (int run = 0; run < 25; ++run) {
    const double seconds = MeasureOnce(work, team);
    second = std::min(second, std::max(seconds, best));
    best = std::min(best, seconds);
    const int min_runs = seconds > kLongSeconds ? 2 : 5;
    if (run + 1 >= min_runs && second <= best * kCloseRatio) break;
  }
  return best;
}

constexpr int64_t kMostRows = 256;    // more behave alike
constexpr double kClearRatio = 1.05;  // what a type that is not the first candidate must be faster by

// For each bucket that a step can reach. Timing does not depend on values.
Times MeasureBuckets(const Site& site, DType input, LinearKernels& kernels, ThreadTeam& team) {
  InputTypes inputs;
  inputs.fill(input);
  kernels.SetInputs(inputs);
  Times times(kRowBuckets.size());
  int64_t measured_rows = 0;
  double seconds = 0;
  for (size_t bucket = 0; bucket < times.size(); ++bucket) {
    const int64_t rows = std::min({kRowBuckets[bucket], kMostRows, site.input->max_rows()});
    if (rows != measured_rows) seconds = Measure([&](Worker& worker) { site.forward(worker, rows); }, team);
    times[bucket] = seconds;
    measured_rows = rows;
  }
  return times;
}

double GeometricMean(const Times& times) {
  double log_sum = 0;
  for (const double seconds : times) log_sum += std::log(seconds);
  return std::exp(log_sum / static_cast<double>(times.size()));
}

struct Candidate {
  DType input;
  Times times;
};

// Those behind the first must be clearly faster.
InputTypes Fastest(const std::vector<Candidate>& candidates, bool deterministic) {
  InputTypes result;
  for (size_t bucket = 0; bucket < result.size(); ++bucket) {
    const auto time = [&](const Candidate& candidate) {
      const double seconds = deterministic ? GeometricMean(candidate.times) : candidate.times[bucket];
      return &candidate == candidates.data() ? seconds : seconds * kClearRatio;
    };
    result[bucket] = std::ranges::min_element(candidates, {}, time)->input;
  }
  return result;
}

// At least as accurate as the storage, the closest to it first.
std::vector<DType> AutoCandidates(const LinearKernels& kernels) {
  std::vector<DType> result = {kernels.DefaultInput()};
  if (kernels.Supports(DType::kBF16)) result.push_back(DType::kBF16);
  return result;
}

std::string Describe(const Site& site) {
  const LinearShape& shape = site.linear->shape();
  return std::format("{} [{}, {}] {}", site.name, shape.out_features, shape.in_features, ToString(shape.weight_type));
}

std::string DescribeTimes(const Site& site, const std::vector<Candidate>& candidates) {
  std::string text = Describe(site);
  for (const Candidate& candidate : candidates) {
    text += std::format("; {}", ToString(candidate.input));
    for (size_t bucket = 0; bucket + 1 < kRowBuckets.size(); ++bucket) {
      text += std::format("{} {:.0f}", bucket == 0 ? "" : ",", candidate.times[bucket] * 1e6);
    }
  }
  text += std::format(" us at {} rows", absl::StrJoin(std::span(kRowBuckets).first(kRowBuckets.size() - 1), ", "));
  return text;
}

// Compares times where there is a choice.
InputTypes Choose(const std::vector<DType>& inputs, bool deterministic, const Site& site, LinearKernels& kernels,
                  ThreadTeam& team, KernelTimes& times) {
  InputTypes chosen;
  chosen.fill(inputs.front());
  if (inputs.size() == 1) return chosen;
  std::vector<Candidate> candidates;
  for (const DType input : inputs) {
    const std::string name =
        std::format("{}, inputs {}, up to {} rows", Describe(site), ToString(input), site.input->max_rows());
    const Times& seconds =
        times.Get(name, kRowBuckets.size(), [&] { return MeasureBuckets(site, input, kernels, team); });
    if (!seconds.empty()) candidates.push_back({input, seconds});
  }
  if (candidates.empty()) return chosen;
  log::Info("kernels: {}", DescribeTimes(site, candidates));
  return Fastest(candidates, deterministic);
}

// "qkv int8, from 65 rows bf16".
std::string DescribeChoice(const Site& site) {
  std::string text(site.name);
  DType input = site.linear->kernels().InputFor(1);
  text += std::format(" {}", ToString(input));
  for (size_t bucket = 1; bucket < kRowBuckets.size(); ++bucket) {
    const int64_t first_rows = kRowBuckets[bucket - 1] + 1;
    const DType next = site.linear->kernels().InputFor(first_rows);
    if (next != input) text += std::format(", from {} rows {}", first_rows, ToString(next));
    input = next;
  }
  return text;
}

bool IsInUse(DType type, const ModelWeights& weights) {
  return std::ranges::any_of(weights.kernels, [&](const auto& kernels) {
    return std::ranges::any_of(kRowBuckets, [&](int64_t rows) { return kernels->InputFor(rows) == type; });
  });
}

// All types in use, in order of their width.
std::string TypesInUse(const ModelWeights& weights) {
  std::string text;
  for (const DType type : {DType::kInt8, DType::kBF16, DType::kF32}) {
    if (IsInUse(type, weights)) text += StrCat(text.empty() ? "" : ", ", ToString(type));
  }
  return text;
}

void ConnectReaders(const ModelWeights& weights, Workspace& workspace) {
  for (const LayerWeights& layer : weights.layers) {
    workspace.normed.AddReader(layer.qkv_proj.kernels());
    workspace.attended.AddReader(layer.o_proj.kernels());
    workspace.normed.AddReader(layer.gate_up_proj.kernels());
    workspace.gated.AddReader(layer.down_proj.kernels());
  }
  workspace.head_input.AddReader(weights.lm_head.kernels());
}

// Seconds of a prompt's attention in its longest chunk, all of whose keys lie in the cache's first block; none where
// its matmuls can't be in this type.
Times MeasureAttention(DType type, const KvLayerView& cache, Workspace& workspace, ThreadTeam& team) {
  if (!workspace.attention.UseMatmuls(type)) return {};
  const int64_t rows = std::min(kMostRows, workspace.attended.max_rows());
  const std::vector<BlockId> block_table(CeilDiv(rows, cache.layout.block_size), 0);
  const int64_t query_start_loc[] = {0, rows};
  workspace.SetRows(rows, 0);
  workspace.attention.SetBatch({.query_start_loc = query_start_loc,
                                .seq_lens = {&rows, 1},
                                .block_tables = block_table.data(),
                                .max_blocks_per_seq = static_cast<int64_t>(block_table.size())});
  const auto forward = [&](Worker& worker) {
    workspace.attention.Forward(worker, cache, workspace.qkv(rows), workspace.attended);
  };
  return {Measure(forward, team)};
}

// Prompts' attention is in f32, in which a row's bits do not depend on its batch, or, where linear layers round their
// inputs anyway and batches may matter, in bf16 if that is faster.
std::string ChooseAttention(bool deterministic, const ModelWeights& weights, const KvLayerView& cache,
                            Workspace& workspace, ThreadTeam& team, KernelTimes& times) {
  const bool rounds = IsInUse(DType::kBF16, weights) || IsInUse(DType::kInt8, weights);
  if (deterministic || !rounds) return "attention f32";
  const KvLayout& layout = cache.layout;
  const auto seconds_in = [&](DType type) {
    const std::string name = std::format("attention [{}, {}] over {} [{}, {}], blocks of {}, matmuls {}, up to {} rows",
                                         workspace.attention.config().num_heads, layout.head_dim,
                                         ToString(layout.dtype), layout.num_kv_heads, layout.head_dim,
                                         layout.block_size, ToString(type), workspace.attended.max_rows());
    return times.Get(name, 1, [&] { return MeasureAttention(type, cache, workspace, team); });
  };
  const Times f32 = seconds_in(DType::kF32);
  const Times bf16 = seconds_in(DType::kBF16);
  if (f32.empty() || bf16.empty()) return "attention f32";
  log::Info("kernels: attention; f32 {:.0f}; bf16 {:.0f} us", f32[0] * 1e6, bf16[0] * 1e6);
  const bool is_faster = bf16[0] * kClearRatio < f32[0];
  workspace.attention.UseMatmuls(is_faster ? DType::kBF16 : DType::kF32);
  return is_faster ? "attention f32, of prompts bf16" : "attention f32";
}

std::optional<DType> ParseInput(std::string_view word) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kInt8}) {
    if (word == ToString(type)) return type;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<KernelChoice> ChooseKernels(std::string_view requested, bool deterministic, ModelWeights& weights,
                                           const KvLayerView& cache, Workspace& workspace, ThreadTeam& team,
                                           KernelTimes& times) {
  const std::optional<DType> asked = ParseInput(requested);
  bool granted = false;
  std::vector<std::string> choices;
  for (const auto& kernels : weights.kernels) {
    const std::vector<Site> sites = SitesOf(*kernels, weights, workspace);
    if (sites.empty()) continue;  // an embedding table is only looked up
    std::vector<DType> candidates = AutoCandidates(*kernels);
    if (asked && kernels->Supports(*asked)) {
      granted = true;
      candidates = {*asked};
    }
    kernels->SetInputs(Choose(candidates, deterministic, sites.front(), *kernels, team, times));
    for (const Site& site : sites) choices.push_back(DescribeChoice(site));
  }
  if (asked && !granted) {
    return InvalidArgument("compute_type", requested,
                           "auto, or a type that these weights can be read in on this processor");
  }
  ConnectReaders(weights, workspace);
  choices.push_back(ChooseAttention(deterministic, weights, cache, workspace, team, times));
  const std::string how = asked ? "asked for: " : "as the weights are stored, or faster and no less accurate: ";
  return KernelChoice{TypesInUse(weights), how + absl::StrJoin(choices, "; ")};
}

}  // namespace quire
