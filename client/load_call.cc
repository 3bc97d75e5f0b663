#include "client/load_call.h"

namespace quire {
namespace {

double Seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::optional<double> LoadMeasurement::SecondsPerOutputToken() const {
  if (!first_token_seconds || num_output_tokens < 2) {
    return std::nullopt;
  }
  double sum = 0;
  for (const double gap : gap_seconds) {
    sum += gap;
  }
  return sum / static_cast<double>(num_output_tokens - 1);
}

LoadCall::LoadCall(const PlannedRequest& planned, std::optional<double> timeout_seconds)
    : cancel_after_tokens_(planned.cancel_after_tokens) {
  if (timeout_seconds) {
    const auto timeout = std::chrono::duration<double>(*timeout_seconds);
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
  }
  if (!planned.tenant.empty()) {
    context_.AddMetadata("x-tenant-id", planned.tenant);
  }
  measurement_.tenant = planned.tenant;
  measurement_.num_prompt_tokens = static_cast<int64_t>(planned.token_ids.size());
  request_.mutable_token_ids()->mutable_ids()->Add(planned.token_ids.begin(), planned.token_ids.end());
  v1::SamplingParams& sampling = *request_.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_ignore_eos(true);
  sampling.set_max_tokens(planned.max_tokens);
}

void LoadCall::Begin(v1::Generation::Stub* stub, grpc::CompletionQueue* queue) {
  start_ = std::chrono::steady_clock::now();
  reader_ = stub->PrepareAsyncGenerateStream(&context_, request_, queue);
  if (cancel_after_tokens_ == 0) {
    measurement_.cancelled_by_client = true;
    context_.TryCancel();
  }
  reader_->StartCall(this);
}

bool LoadCall::Proceed(bool ok) {
  switch (stage_) {
    case Stage::kStarting:
    case Stage::kReading:
      if (stage_ == Stage::kReading && ok) {
        TakeResponse();
      }
      stage_ = ok ? Stage::kReading : Stage::kFinishing;
      ok ? reader_->Read(&response_, this) : reader_->Finish(&status_, this);
      return true;
    case Stage::kFinishing: break;
  }
  measurement_.status = status_.error_code();
  measurement_.message = status_.error_message();
  measurement_.total_seconds = Seconds(std::chrono::steady_clock::now() - start_);
  return false;
}

void LoadCall::TakeResponse() {
  if (response_.has_chunk() && response_.chunk().token_ids_size() > 0) {
    CountTokens(response_.chunk().token_ids_size());
  }
  if (response_.has_finished()) {
    measurement_.num_cached_prompt_tokens = response_.finished().usage().cached_prompt_tokens();
  }
}

void LoadCall::CountTokens(int64_t num_tokens) {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (!measurement_.first_token_seconds) {
    measurement_.first_token_seconds = Seconds(now - start_);
  } else {
    measurement_.gap_seconds.push_back(Seconds(now - last_tokens_));
  }
  last_tokens_ = now;
  measurement_.num_output_tokens += num_tokens;
  if (cancel_after_tokens_ && measurement_.num_output_tokens >= *cancel_after_tokens_) {
    measurement_.cancelled_by_client = true;
    context_.TryCancel();
  }
}

}  // namespace quire
