#include "engine/model/decoder_loader.h"

#include <new>
#include <thread>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/base/version.h"
#include "engine/model/kernel_times.h"
#include "engine/model/kv_cache_storage.h"
#include "engine/model/weights.h"
#include "engine/ops/parallel.h"
#include "engine/ops/processor.h"

namespace quire {
namespace {

absl::StatusOr<LoadedDecoder> LoadHere(const Checkpoint& checkpoint, const ModelConfig& config,
                                       const WeightPlan& weight_plan, const DecoderOptions& options,
                                       const std::function<void(int64_t, int64_t)>& progress) {
  auto team =
      std::make_unique<ThreadTeam>(options.limits.num_threads, Workspace::ScratchBytesFor(config, options.limits));
  QUIRE_ASSIGN_OR_RETURN(ModelWeights weights, LoadWeights(checkpoint, config, weight_plan, *team, progress));
  LoadedDecoder loaded;
  // Seconds, if a virtual machine's host has never given it this memory.
  log::Info("touching {} MiB of KV cache",
            (options.num_blocks * KvCacheStorage::BytesPerBlock(config.num_layers, options.limits.kv_layout)) >> 20);
  loaded.decoder = std::make_unique<Decoder>(config, std::move(weights), options.limits, weight_plan.forms(),
                                             options.num_blocks, std::move(team));
  KernelTimes times = KernelTimes::Open(
      options.kernel_times_file,
      StrCat("quire ", kVersion, ", ", DescribeProcessor(), ", ", options.limits.num_threads, " threads"));
  QUIRE_ASSIGN_OR_RETURN(loaded.kernels,
                         loaded.decoder->ChooseKernels(options.compute_type, options.deterministic, times));
  // The choice stands without the file.
  const absl::Status saved = times.Save();
  if (!saved.ok()) log::Warning("{}", std::string(saved.message()));
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedDecoder> LoadDecoder(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const WeightPlan& weight_plan, const DecoderOptions& options,
                                          const std::function<void(int64_t, int64_t)>& progress) {
  absl::StatusOr<LoadedDecoder> loaded;
  // OpenMP keeps a team of threads for each thread that ever opened a region, and the thread that will run the steps
  // has its own. Loading happens on a thread that ends, and its team with it.
  std::thread([&] {
    try {
      loaded = LoadHere(checkpoint, config, weight_plan, options, progress);
    } catch (const std::bad_alloc&) {
      loaded = absl::ResourceExhaustedError("out of memory while loading the model");
    }
  }).join();
  return loaded;
}

}  // namespace quire
