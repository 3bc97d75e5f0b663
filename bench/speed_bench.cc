#include "bench/speed_bench.h"

#include <algorithm>

#include "bench/percentile.h"
#include "engine/base/math.h"
#include "engine/base/status.h"

namespace quire {
namespace {

// What a step takes of a prompt at least, when others decode.
constexpr int64_t kLeastPromptTokensPerStep = 16;

absl::Status DoesNotFit(int64_t batch, int64_t context) {
  return absl::FailedPreconditionError(StrCat("batches: ", batch, " requests of ", context,
                                              " tokens and their output do not fit the KV cache together; give it more "
                                              "with --kv-cache-memory-bytes"));
}

}  // namespace

double SpeedResult::Median(const std::function<double(const RunTotals&)>& figure) const {
  std::vector<double> figures;
  for (const RunTotals& run : runs) figures.push_back(figure(run));
  return quire::Median(std::move(figures));
}

int64_t SpeedBench::MixedOutputTokens(int64_t prompt_tokens, int64_t num_prompts) {
  return 2 + num_prompts * (1 + CeilDiv(prompt_tokens, kLeastPromptTokensPerStep));
}

absl::StatusOr<SpeedResult> SpeedBench::Prefill(int64_t prompt_tokens) {
  SpeedResult result = {.phase = "prefill", .context = prompt_tokens, .prompt_tokens = prompt_tokens};
  QUIRE_RETURN_IF_ERROR(Repeat([&] { return RunPrefill(prompt_tokens); }, &result));
  return result;
}

absl::StatusOr<SpeedResult> SpeedBench::Decode(int64_t batch, int64_t context) {
  SpeedResult result = {.phase = "decode", .batch = batch, .context = context};
  QUIRE_RETURN_IF_ERROR(FillPrefixCache(batch, context));
  QUIRE_RETURN_IF_ERROR(Repeat([&] { return RunDecode(batch, context); }, &result));
  return result;
}

absl::StatusOr<SpeedResult> SpeedBench::Mixed(int64_t batch, int64_t context, int64_t prompt_tokens) {
  SpeedResult result = {.phase = "mixed", .batch = batch, .context = context, .prompt_tokens = prompt_tokens};
  QUIRE_RETURN_IF_ERROR(FillPrefixCache(batch, context));
  QUIRE_RETURN_IF_ERROR(Repeat([&] { return RunMixed(batch, context, prompt_tokens); }, &result));
  return result;
}

absl::Status SpeedBench::Repeat(const Run& run, SpeedResult* result) {
  QUIRE_RETURN_IF_ERROR(run().status());  // warms caches and threads
  for (int64_t i = 0; i < plan_.num_runs; ++i) {
    QUIRE_ASSIGN_OR_RETURN(RunTotals totals, run());
    result->runs.push_back(std::move(totals));
  }
  if (!plan_.profile) return absl::OkStatus();
  profile_.Clear();
  profiles_ = true;
  auto totals = run();
  profiles_ = false;
  QUIRE_RETURN_IF_ERROR(totals.status());
  result->profiled = ProfiledRun{*std::move(totals), profile_};
  return absl::OkStatus();
}

absl::StatusOr<StepRecord> SpeedBench::MeasuredStep() {
  engine_->SetProfile(profiles_ ? &profile_ : nullptr);
  auto step = engine_->Step();
  engine_->SetProfile(nullptr);
  return step;
}

absl::StatusOr<RunTotals> SpeedBench::RunPrefill(int64_t prompt_tokens) {
  RunTotals totals;
  QUIRE_ASSIGN_OR_RETURN(const RequestId id, engine_->Add(NewPrompt(prompt_tokens), 1));
  while (!engine_->has_ended(id)) {
    QUIRE_ASSIGN_OR_RETURN(const StepRecord step, MeasuredStep());
    totals.Add(step);
  }
  totals.num_output_tokens = 1;
  engine_->Forget();
  return totals;
}

absl::StatusOr<RunTotals> SpeedBench::RunDecode(int64_t batch, int64_t context) {
  // The first token comes with the prompt, and those that begin first do not wait for the others.
  QUIRE_ASSIGN_OR_RETURN(const std::vector<RequestId> streams, StartStreams(batch, context, plan_.decode_tokens + 1));
  const auto ended = [this](RequestId id) { return engine_->has_ended(id); };
  RunTotals totals;
  while (std::ranges::none_of(streams, ended)) {
    QUIRE_ASSIGN_OR_RETURN(const StepRecord step, MeasuredStep());
    if (step.num_seqs != batch || step.num_prefill_tokens > 0) return DoesNotFit(batch, context);
    totals.Add(step);
    totals.num_output_tokens += batch;
  }
  EndStreams(streams);
  if (totals.work.num_steps == 0) return DoesNotFit(batch, context);
  return totals;
}

absl::StatusOr<RunTotals> SpeedBench::RunMixed(int64_t batch, int64_t context, int64_t prompt_tokens) {
  const int64_t max_tokens = MixedOutputTokens(prompt_tokens, plan_.num_prompts);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<RequestId> streams, StartStreams(batch, context, max_tokens));
  RunTotals totals;
  std::vector<double> last_token_seconds(batch, 0);
  std::vector<int64_t> num_tokens;
  for (const RequestId stream : streams) num_tokens.push_back(engine_->num_output_tokens(stream));
  for (int64_t prompt = 0; prompt < plan_.num_prompts; ++prompt) {
    QUIRE_ASSIGN_OR_RETURN(const RequestId id, engine_->Add(NewPrompt(prompt_tokens), 1));
    while (!engine_->has_ended(id)) {
      QUIRE_ASSIGN_OR_RETURN(const StepRecord step, MeasuredStep());
      totals.Add(step);
      for (int64_t i = 0; i < batch; ++i) {
        if (engine_->num_output_tokens(streams[i]) == num_tokens[i]) continue;
        totals.num_output_tokens += engine_->num_output_tokens(streams[i]) - num_tokens[i];
        num_tokens[i] = engine_->num_output_tokens(streams[i]);
        totals.token_gaps.push_back(totals.seconds - last_token_seconds[i]);
        last_token_seconds[i] = totals.seconds;
      }
    }
  }
  for (const RequestId stream : streams) {
    if (engine_->has_ended(stream)) return absl::InternalError("a stream ended before the last prompt was computed");
  }
  EndStreams(streams);
  if (totals.token_gaps.empty()) return DoesNotFit(batch, context);
  return totals;
}

std::vector<TokenId> SpeedBench::NewPrompt(int64_t num_tokens) {
  return RandomPrompt(engine_->info().vocab_size, num_tokens, next_seed_++);
}

absl::Status SpeedBench::FillPrefixCache(int64_t batch, int64_t context) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<RequestId> streams, StartStreams(batch, context, 1));
  EndStreams(streams);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RequestId>> SpeedBench::StartStreams(int64_t batch, int64_t context, int64_t max_tokens) {
  std::vector<RequestId> streams;
  for (int64_t i = 0; i < batch; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const RequestId id,
                           engine_->Add(RandomPrompt(engine_->info().vocab_size, context, i), max_tokens));
    streams.push_back(id);
  }
  const auto begun = [this](RequestId id) { return engine_->num_output_tokens(id) > 0; };
  while (!std::ranges::all_of(streams, begun)) QUIRE_RETURN_IF_ERROR(engine_->Step().status());
  return streams;
}

void SpeedBench::EndStreams(const std::vector<RequestId>& streams) {
  for (const RequestId stream : streams) engine_->Cancel(stream);
  engine_->Forget();
}

}  // namespace quire
