#include "bench/bench_engine.h"

#include <random>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/model/decoder_loader.h"
#include "engine/runtime/cpu_model_runner.h"
#include "engine/runtime/request_validation.h"

namespace quire {

// Notes what it is told to compute.
class BenchEngine::Runner : public ModelRunner {
 public:
  Runner(std::unique_ptr<Decoder> decoder, const ForwardBatchLimits& limits) : runner_(std::move(decoder), limits) {}

  int64_t vocab_size() const override { return runner_.vocab_size(); }
  absl::StatusOr<MatrixView<float>> Execute(const StepPlan& plan) override {
    last_ = {.work = WorkOf(plan),
             .num_seqs = static_cast<int64_t>(plan.requests.size()),
             .num_prefill_tokens = plan.num_prefill_tokens};
    return runner_.Execute(plan);
  }
  int64_t num_threads() const override { return runner_.num_threads(); }
  void ForEach(int64_t count, int64_t max_threads, absl::FunctionRef<void(int64_t, int64_t)> body) override {
    runner_.ForEach(count, max_threads, body);
  }

  const StepRecord& last() const { return last_; }

 private:
  CpuModelRunner runner_;
  StepRecord last_;
};

class BenchEngine::SamplingWatch : public EngineObserver {
 public:
  void OnStage(StepStage stage) override {
    if (stage == StepStage::kSample) begin_ = clock_.Now();
    if (stage == StepStage::kEmit) seconds_ = ToSeconds(clock_.Now() - begin_);
  }
  void OnEnd(const std::string&) override {}
  void OnDeadlineExpired(TimePoint) override {}

  double seconds() const { return seconds_; }

 private:
  SteadyClock clock_;
  TimePoint begin_;
  double seconds_ = 0;
};

struct BenchEngine::Stream : public TokenSink {
  int64_t num_output_tokens = 0;
  bool has_ended = false;

  void OnPromptLogprobs(std::vector<PositionLogprobs>) override {}
  void OnTokens(std::vector<OutputToken> tokens) override { num_output_tokens += static_cast<int64_t>(tokens.size()); }
  void OnFinish(const GenerationResult&) override { has_ended = true; }
};

absl::StatusOr<std::unique_ptr<BenchEngine>> BenchEngine::Build(const Checkpoint& checkpoint,
                                                                const EngineConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(checkpoint, config, {}, PlanPurpose::kStart));
  QUIRE_ASSIGN_OR_RETURN(LoadedDecoder loaded, LoadDecoder(checkpoint, plan.model, plan.weights,
                                                           DecoderOptionsFor(config, plan), [](int64_t, int64_t) {}));
  std::unique_ptr<BenchEngine> bench(new BenchEngine);
  bench->info_ = MakeEngineInfo(plan, loaded.kernels);
  bench->sizes_ = SizesOf(*loaded.decoder);
  bench->decoder_ = loaded.decoder.get();
  auto runner = std::make_unique<Runner>(std::move(loaded.decoder), plan.batch_limits());
  bench->runner_ = runner.get();
  bench->watch_ = std::make_unique<SamplingWatch>();
  bench->engine_ = MakeEngine(config, plan, std::move(runner), {}, &bench->clock_);
  bench->engine_->SetObserver(bench->watch_.get());
  return bench;
}

BenchEngine::~BenchEngine() = default;

absl::StatusOr<RequestId> BenchEngine::Add(std::vector<TokenId> prompt, int64_t max_tokens) {
  auto stream = std::make_shared<Stream>();
  GenerationRequest request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  request.sampling.max_tokens = max_tokens;
  request.arrival_time = clock_.Now();
  request.sink = stream;
  QUIRE_RETURN_IF_ERROR(ValidateRequest(request, engine_->limits()));
  streams_.push_back(std::move(stream));
  const auto id = static_cast<RequestId>(next_id_++);
  engine_->AddRequest(id, std::move(request));
  return id;
}

void BenchEngine::Cancel(RequestId id) { engine_->Cancel(id, absl::CancelledError("measured")); }

int64_t BenchEngine::num_output_tokens(RequestId id) const {
  return streams_.at(static_cast<int64_t>(id) - first_id_)->num_output_tokens;
}

bool BenchEngine::has_ended(RequestId id) const { return streams_.at(static_cast<int64_t>(id) - first_id_)->has_ended; }

void BenchEngine::Forget() {
  for (const auto& stream : streams_) QUIRE_CHECK(stream->has_ended);
  streams_.clear();
  first_id_ = next_id_;
}

absl::StatusOr<StepRecord> BenchEngine::Step() {
  const TimePoint begin = clock_.Now();
  const StepOutcome outcome = engine_->Step();
  const double seconds = ToSeconds(clock_.Now() - begin);
  if (outcome != StepOutcome::kRan) return absl::InternalError("a step failed, or had nothing to compute");
  StepRecord record = runner_->last();
  record.seconds = seconds;
  record.sampling_seconds = watch_->seconds();
  return record;
}

std::vector<TokenId> RandomPrompt(int64_t vocab_size, int64_t num_tokens, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> prompt;
  prompt.reserve(num_tokens);
  for (int64_t i = 0; i < num_tokens; ++i) {
    prompt.push_back(static_cast<TokenId>(random() % static_cast<uint64_t>(vocab_size)));
  }
  return prompt;
}

}  // namespace quire
