#include "client/load_grpc.h"

#include <chrono>
#include <functional>
#include <utility>

namespace quire {
namespace {

// The queue's tags are the call itself, one at a time.
class GrpcLoadCall : public LoadCall {
 public:
  GrpcLoadCall(const PlannedRequest& planned, const GenerationClient& client, grpc::CompletionQueue* queue)
      : LoadCall(planned), stub_(client.generation()), queue_(queue) {
    if (client.timeout_seconds()) {
      const auto timeout = std::chrono::duration<double>(*client.timeout_seconds());
      context_.set_deadline(std::chrono::system_clock::now() +
                            std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
    }
    if (!planned.tenant.empty()) {
      context_.AddMetadata("x-tenant-id", planned.tenant);
    }
    client.AddKey(context_);
    request_.mutable_token_ids()->mutable_ids()->Add(planned.token_ids.begin(), planned.token_ids.end());
    v1::SamplingParams& sampling = *request_.mutable_sampling();
    sampling.set_temperature(0);
    sampling.set_ignore_eos(true);
    sampling.set_max_tokens(planned.max_tokens);
  }

  void Begin(std::function<void()> on_end) override {
    on_end_ = std::move(on_end);
    reader_ = stub_->PrepareAsyncGenerateStream(&context_, request_, queue_);
    if (!OnSending()) {
      context_.TryCancel();
    }
    reader_->StartCall(this);
  }

  void Cancel() override { context_.TryCancel(); }

  // The operation under way has ended.
  void Proceed(bool ok) {
    if (stage_ == Stage::kFinishing) {
      OnEnded(status_.error_code(), status_.error_message());
      const auto on_end = std::move(on_end_);
      on_end();
      return;
    }
    if (stage_ == Stage::kReading && ok) {
      TakeResponse();
    }
    stage_ = ok ? Stage::kReading : Stage::kFinishing;
    ok ? reader_->Read(&response_, this) : reader_->Finish(&status_, this);
  }

 private:
  enum class Stage { kStarting, kReading, kFinishing };

  void TakeResponse() {
    const int num_tokens = response_.has_chunk() ? response_.chunk().token_ids_size() : 0;
    if (num_tokens > 0 && !OnTokens(num_tokens)) {
      context_.TryCancel();
    }
    if (response_.has_finished()) {
      measurement().num_cached_prompt_tokens = response_.finished().usage().cached_prompt_tokens();
    }
  }

  v1::Generation::Stub* const stub_;
  grpc::CompletionQueue* const queue_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateStreamResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateStreamResponse>> reader_;
  Stage stage_ = Stage::kStarting;
  std::function<void()> on_end_;
};

}  // namespace

GrpcLoadTransport::GrpcLoadTransport(const GenerationClient& client) : client_(client) {
  server_ = std::thread([this] {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      static_cast<GrpcLoadCall*>(tag)->Proceed(ok);
    }
  });
}

GrpcLoadTransport::~GrpcLoadTransport() {
  queue_.Shutdown();
  server_.join();
}

std::unique_ptr<LoadCall> GrpcLoadTransport::NewCall(const PlannedRequest& planned) {
  return std::make_unique<GrpcLoadCall>(planned, client_, &queue_);
}

}  // namespace quire
