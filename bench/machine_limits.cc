#include "bench/machine_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <vector>

#include "engine/base/math.h"
#include "engine/ops/brgemm.h"
#include "engine/ops/peak_kernels.h"
#include "engine/tensor/buffer.h"

namespace quire {
namespace {

// A run is short, so that it finds room between the turns that neighbours take on the same processors.
constexpr double kLeastSeconds = 0.001;

// The best of many runs, more of them while they still get better.
class BestRate {
 public:
  void Add(double rate) {
    ++num_runs_;
    if (rate > kBetter * best_) num_runs_at_best_ = num_runs_;
    best_ = std::max(best_, rate);
  }
  bool is_found() const { return num_runs_ >= kMostRuns || num_runs_ - num_runs_at_best_ >= kRunsWithoutBetter; }
  double value() const { return best_; }

 private:
  static constexpr double kBetter = 1.02;
  static constexpr int kRunsWithoutBetter = 50;
  static constexpr int kMostRuns = 500;

  double best_ = 0;
  int num_runs_ = 0;
  int num_runs_at_best_ = 0;
};

struct TeamTime {
  double seconds;               // from the first thread's begin to the last one's end
  double least_thread_seconds;  // of the thread that took least
};

// Times body(worker); all threads begin when all are there.
template <typename Body>
TeamTime TimeOnTeam(ThreadTeam& team, const Body& body) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  std::vector<Clock::time_point> begins(team.num_threads());
  std::vector<Clock::time_point> ends(team.num_threads());
  team.Run([&](Worker& worker) {
    worker.Barrier();
    begins[worker.index()] = Clock::now();
    body(worker);
    ends[worker.index()] = Clock::now();
  });
  Seconds least = Seconds::max();
  for (size_t i = 0; i < begins.size(); ++i) least = std::min<Seconds>(least, ends[i] - begins[i]);
  return {Seconds(*std::ranges::max_element(ends) - *std::ranges::min_element(begins)).count(), least.count()};
}

// Operations per second of run(worker, iterations), which returns how many it did, on every thread.
template <typename Run>
double MeasureOps(ThreadTeam& team, const Run& run) {
  std::atomic<int64_t> num_ops = 0;
  const auto time_run = [&](int64_t iterations) {
    num_ops = 0;
    return TimeOnTeam(team, [&](Worker& worker) { num_ops += run(worker, iterations); });
  };
  int64_t iterations = 1000;
  while (time_run(iterations).least_thread_seconds < kLeastSeconds) iterations *= 2;
  BestRate best;
  while (!best.is_found()) {
    const double seconds = time_run(iterations).seconds;
    best.Add(static_cast<double>(num_ops) / seconds);
  }
  return best.value();
}

double MeasureVectorOps(ThreadTeam& team, PeakOp op) {
  return MeasureOps(team, [op](Worker&, int64_t iterations) { return RunPeakLoop(op, iterations); });
}

// A product whose operands stay in the first-level cache.
std::optional<double> MeasureMatrixOps(ThreadTeam& team, DType type) {
  constexpr int64_t kRows = 32;
  constexpr int64_t kColumns = 64;
  constexpr int64_t kDepth = 256;
  const auto brgemm = Brgemm::Create({.n = kColumns, .k = kDepth, .lda = kDepth, .ldc = kColumns, .input_type = type});
  if (!brgemm) return std::nullopt;
  const Buffer a(kRows * kDepth * SizeOf(type));
  const Buffer b(kDepth * kColumns * SizeOf(type));
  constexpr int64_t kOutputBytes = kRows * kColumns * 4;
  const Buffer c(team.num_threads() * kOutputBytes);
  return MeasureOps(team, [&](Worker& worker, int64_t iterations) {
    auto* output = reinterpret_cast<float*>(c.data() + worker.index() * kOutputBytes);
    const int64_t num_products = CeilDiv(iterations, int64_t{100});
    for (int64_t i = 0; i < num_products; ++i) {
      brgemm->Execute(a.data(), b.data(), output, kRows, worker.scratch().data());
    }
    Brgemm::ReleaseThread();
    return num_products * 2 * kRows * kColumns * kDepth;
  });
}

nlohmann::json Giga(double per_second) { return per_second / 1e9; }

}  // namespace

double MeasureReadBandwidth(ThreadTeam& team, int64_t num_bytes) {
  constexpr int64_t kChunkBytes = 256 << 10;
  constexpr int64_t kChunksPerRun = 128;
  constexpr int64_t kLeastPasses = 5;
  constexpr std::array<int, 4> kStreams = {1, 2, 4, 8};
  const int64_t num_chunks = std::max<int64_t>(1, num_bytes / kChunkBytes);
  const Buffer buffer(num_chunks * kChunkBytes);
  team.Run([&](Worker& worker) { TouchPages(worker, buffer); });
  std::atomic<uint64_t> sum = 0;
  BestRate best;
  const int64_t chunks_per_run = std::min(kChunksPerRun, num_chunks);
  const int64_t runs_per_pass = num_chunks / chunks_per_run;
  for (int64_t run = 0; run < kLeastPasses * runs_per_pass || !best.is_found(); ++run) {
    const std::byte* data = buffer.data() + run % runs_per_pass * chunks_per_run * kChunkBytes;
    // Every part of the buffer is read in every way.
    const int num_streams = kStreams[(run + run / runs_per_pass) % kStreams.size()];
    const TeamTime time = TimeOnTeam(team, [&](Worker& worker) {
      worker.For(chunks_per_run, [&](int64_t begin, int64_t end) {
        sum += ReadAll(data + begin * kChunkBytes, (end - begin) * kChunkBytes, num_streams);
      });
    });
    best.Add(static_cast<double>(chunks_per_run * kChunkBytes) / time.seconds);
  }
  return best.value();
}

MachineLimits MeasureMachineLimits(int64_t num_threads) {
  constexpr int64_t kMemoryBytes = int64_t{1} << 30;
  ThreadTeam team(num_threads, Brgemm::kScratchBytes);
  return {.num_threads = num_threads,
          .vector_target = PeakTargetName(),
          .memory_bytes_per_second = MeasureReadBandwidth(team, kMemoryBytes),
          .f32_ops_per_second = MeasureVectorOps(team, PeakOp::kF32MulAdd),
          .bf16_ops_per_second = MeasureVectorOps(team, PeakOp::kBf16Dot),
          .int8_ops_per_second = MeasureVectorOps(team, PeakOp::kInt8Dot),
          .matrix_f32_ops_per_second = MeasureMatrixOps(team, DType::kF32),
          .matrix_bf16_ops_per_second = MeasureMatrixOps(team, DType::kBF16)};
}

std::optional<double> MachineLimits::OpsPerSecond(std::string_view compute_type) const {
  if (compute_type == "f32") return std::max(f32_ops_per_second, matrix_f32_ops_per_second.value_or(0));
  if (compute_type == "bf16") return std::max(bf16_ops_per_second, matrix_bf16_ops_per_second.value_or(0));
  if (compute_type == "int8") return int8_ops_per_second;
  return std::nullopt;
}

nlohmann::json MachineLimits::ToJson() const {
  nlohmann::json json = {{"num_threads", num_threads},
                         {"vector_target", vector_target},
                         {"memory_gigabytes_per_second", Giga(memory_bytes_per_second)},
                         {"f32_gigaops_per_second", Giga(f32_ops_per_second)},
                         {"bf16_gigaops_per_second", Giga(bf16_ops_per_second)},
                         {"int8_gigaops_per_second", Giga(int8_ops_per_second)},
                         {"matrix_f32_gigaops_per_second", nullptr},
                         {"matrix_bf16_gigaops_per_second", nullptr}};
  if (matrix_f32_ops_per_second) json["matrix_f32_gigaops_per_second"] = Giga(*matrix_f32_ops_per_second);
  if (matrix_bf16_ops_per_second) json["matrix_bf16_gigaops_per_second"] = Giga(*matrix_bf16_ops_per_second);
  return json;
}

}  // namespace quire
