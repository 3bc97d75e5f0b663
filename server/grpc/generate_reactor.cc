#include "server/grpc/generate_reactor.h"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "quire/v1/generation.pb.h"
#include "server/grpc/raw_messages.h"
#include "server/grpc/status_translation.h"
#include "server/messages/chunk_outbox.h"
#include "server/messages/response_translation.h"

namespace quire {
namespace {

// Owned by itself until gRPC is done with it, and by the call until its last event.
class UnaryReactor : public grpc::ServerUnaryReactor, public GenerationListener {
 public:
  UnaryReactor(const Tokenizer* tokenizer, UnaryFormat format, std::string request_id, grpc::ByteBuffer* buffer)
      : tokenizer_(tokenizer), format_(std::move(format)), request_id_(std::move(request_id)), buffer_(buffer) {}

  static UnaryReactor* Start(const GenerationPipeline& pipeline, UnaryFormat format, GenerationInput input,
                             grpc::ByteBuffer* buffer) {
    auto reactor = std::make_shared<UnaryReactor>(pipeline.tokenizer, std::move(format), input.request_id, buffer);
    reactor->self_ = reactor;
    reactor->call_ = GenerationCall::Start(pipeline, std::move(input), reactor);
    return reactor.get();
  }

  void OnCancel() override { call_->Cancel(); }
  void OnDone() override { self_.reset(); }

  void OnStarted(int64_t) override {}
  absl::Status OnChunk(GenerationChunk chunk) override {
    AppendTo(chunk, *tokenizer_, &output_);
    return absl::OkStatus();
  }
  void OnFinished(const GenerationResult& result) override {
    if (result.status.ok()) *buffer_ = format_.response({request_id_, std::move(output_), result});
    Finish(format_.status(result.status));
  }

 private:
  const Tokenizer* const tokenizer_;
  const UnaryFormat format_;
  const std::string request_id_;
  grpc::ByteBuffer* const buffer_;  // gRPC's, until OnDone
  std::shared_ptr<UnaryReactor> self_;
  std::shared_ptr<GenerationCall> call_;
  v1::StreamChunk output_;  // so far; the call's strand only
};

// Owned like UnaryReactor.
class StreamReactor : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public GenerationListener {
 public:
  StreamReactor(const Tokenizer* tokenizer, std::string model_name, StreamMemory* memory, std::string request_id)
      : tokenizer_(tokenizer),
        model_name_(std::move(model_name)),
        request_id_(std::move(request_id)),
        chunks_(memory) {}

  static StreamReactor* Start(const GenerationPipeline& pipeline, const std::string& model_name, StreamMemory* memory,
                              GenerationInput input) {
    auto reactor = std::make_shared<StreamReactor>(pipeline.tokenizer, model_name, memory, input.request_id);
    reactor->self_ = reactor;
    reactor->call_ = GenerationCall::Start(pipeline, std::move(input), reactor);
    return reactor.get();
  }

  void OnCancel() override { call_->Cancel(); }
  void OnDone() override { self_.reset(); }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
      reader_gone_ = reader_gone_ || !ok;
    }
    if (!ok) call_->Cancel();
    WriteNext();
  }

  void OnStarted(int64_t num_prompt_tokens) override {
    {
      const std::lock_guard lock(mutex_);
      v1::StreamStarted* started = started_.emplace().mutable_started();
      started->set_request_id(request_id_);
      started->set_model(model_name_);
      started->set_prompt_tokens(num_prompt_tokens);
    }
    WriteNext();
  }

  absl::Status OnChunk(GenerationChunk chunk) override {
    v1::StreamChunk message;
    AppendTo(chunk, *tokenizer_, &message);
    absl::Status status;
    {
      const std::lock_guard lock(mutex_);
      status = chunks_.Add(std::move(message));
    }
    WriteNext();
    return status;
  }

  void OnFinished(const GenerationResult& result) override {
    {
      const std::lock_guard lock(mutex_);
      end_ = result;
    }
    WriteNext();
  }

 private:
  using Message = std::optional<v1::GenerateStreamResponse>;

  // Starts the next operation unless one is in flight. Only the thread that set `busy_` goes past the lock.
  void WriteNext() {
    Message message;
    std::optional<GenerationResult> end;
    {
      const std::lock_guard lock(mutex_);
      if (busy_) return;
      if (!reader_gone_ && started_) {
        message = std::exchange(started_, std::nullopt);
      } else if (!reader_gone_ && !chunks_.empty()) {
        *message.emplace().mutable_chunk() = chunks_.Take();
      } else if (end_) {
        end = std::exchange(end_, std::nullopt);
      } else {
        return;
      }
      busy_ = true;
    }
    if (end) return WriteEnd(*end);
    buffer_ = ToByteBuffer(*message);
    StartWrite(&buffer_);
  }

  void WriteEnd(const GenerationResult& result) {
    if (!result.status.ok()) return Finish(ToGrpcStatus(result.status));
    v1::GenerateStreamResponse message;
    v1::StreamFinished* finished = message.mutable_finished();
    finished->set_finish_reason(ToProto(result.finish_reason));
    *finished->mutable_usage() = UsageOf(result);
    *finished->mutable_timings() = TimingsOf(result);
    buffer_ = ToByteBuffer(message);
    StartWriteAndFinish(&buffer_, grpc::WriteOptions(), grpc::Status::OK);
  }

  const Tokenizer* const tokenizer_;
  const std::string model_name_;
  const std::string request_id_;
  std::shared_ptr<StreamReactor> self_;
  std::shared_ptr<GenerationCall> call_;
  grpc::ByteBuffer buffer_;  // of the operation in flight

  std::mutex mutex_;
  // The outbox, guarded by mutex_; in the order of writing.
  Message started_;
  ChunkOutbox chunks_;  // what came while a write was in flight
  std::optional<GenerationResult> end_;
  bool busy_ = false;  // an operation is in flight, or the last one was started
  bool reader_gone_ = false;
};

class RefusedStream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

class RefusedUnary : public grpc::ServerUnaryReactor {
 public:
  explicit RefusedUnary(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* StartUnaryGeneration(const GenerationPipeline& pipeline, UnaryFormat format,
                                               absl::StatusOr<GenerationInput> input, grpc::ByteBuffer* response) {
  if (!input.ok()) {
    pipeline.metrics->CountRefusal(input.status());
    return new RefusedUnary(input.status());
  }
  return UnaryReactor::Start(pipeline, std::move(format), *std::move(input), response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartStreamGeneration(const GenerationPipeline& pipeline,
                                                                  const std::string& model_name, StreamMemory* memory,
                                                                  absl::StatusOr<GenerationInput> input) {
  if (!input.ok()) {
    pipeline.metrics->CountRefusal(input.status());
    return new RefusedStream(input.status());
  }
  return StreamReactor::Start(pipeline, model_name, memory, *std::move(input));
}

}  // namespace quire
