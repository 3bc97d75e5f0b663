#include "server/http/http_answer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "server/messages/chunk_outbox.h"
#include "server/messages/response_translation.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kIsGoneInterval(50);  // between looks at the connection

}  // namespace

struct HttpAnswer::Mailbox {
  std::mutex mutex;  // guards the choices
  std::condition_variable changed;
};

// One choice's events, from its call's strand to the connection's thread.
class HttpAnswer::Choice : public GenerationListener {
 public:
  Choice(const Tokenizer* tokenizer, StreamMemory* memory, std::shared_ptr<Mailbox> mailbox)
      : tokenizer_(tokenizer), mailbox_(std::move(mailbox)), chunks_(memory) {}

  void OnStarted(int64_t) override {
    Change([this] { started_ = true; });
  }
  absl::Status OnChunk(GenerationChunk chunk) override {
    v1::StreamChunk message;
    AppendTo(chunk, *tokenizer_, &message);
    absl::Status status;
    Change([&] { status = chunks_.Add(std::move(message)); });
    return status;
  }
  void OnFinished(const GenerationResult& result) override {
    Change([&] { end_ = result; });
  }

  // With the mailbox's mutex held.
  bool started() const { return started_; }
  absl::Status refusal() const { return !started_ && end_ ? end_->status : absl::OkStatus(); }
  std::optional<AnswerEvent> Take(size_t index) {
    if (!chunks_.empty()) return AnswerEvent{.choice = index, .chunk = chunks_.Take(), .end = std::nullopt};
    if (!end_) return std::nullopt;
    return AnswerEvent{.choice = index, .chunk = {}, .end = std::exchange(end_, std::nullopt)};
  }

 private:
  template <typename Function>
  void Change(const Function& function) {
    {
      const std::lock_guard lock(mailbox_->mutex);
      function();
    }
    mailbox_->changed.notify_one();
  }

  const Tokenizer* const tokenizer_;
  const std::shared_ptr<Mailbox> mailbox_;
  bool started_ = false;  // this and below: guarded by the mailbox's mutex
  ChunkOutbox chunks_;
  std::optional<GenerationResult> end_;
};

HttpAnswer::HttpAnswer(const GenerationPipeline& pipeline, StreamMemory* memory, std::vector<GenerationInput> inputs,
                       IsGone is_gone)
    : is_gone_(std::move(is_gone)), mailbox_(std::make_shared<Mailbox>()) {
  for (GenerationInput& input : inputs) {
    choices_.push_back(std::make_shared<Choice>(pipeline.tokenizer, memory, mailbox_));
    calls_.push_back(GenerationCall::Start(pipeline, std::move(input), choices_.back()));
  }
}

HttpAnswer::~HttpAnswer() {
  for (const std::shared_ptr<GenerationCall>& call : calls_) call->Cancel();
}

absl::Status HttpAnswer::WaitForStart() {
  std::unique_lock lock(mailbox_->mutex);
  while (true) {
    for (const auto& choice : choices_) {
      if (const absl::Status refusal = choice->refusal(); !refusal.ok()) return refusal;
    }
    if (std::ranges::all_of(choices_, [](const auto& choice) { return choice->started(); })) return absl::OkStatus();
    mailbox_->changed.wait_for(lock, kIsGoneInterval);
    if (is_gone_()) return absl::CancelledError("the client is gone");
  }
}

std::optional<AnswerEvent> HttpAnswer::Next() {
  std::unique_lock lock(mailbox_->mutex);
  while (num_ended_ < choices_.size()) {
    if (std::optional<AnswerEvent> event = Take()) return event;
    mailbox_->changed.wait_for(lock, kIsGoneInterval);
    if (std::optional<AnswerEvent> event = Take()) return event;
    if (is_gone_()) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<AnswerEvent> HttpAnswer::Take() {
  for (size_t i = 0; i < choices_.size(); ++i) {
    const size_t index = (next_choice_ + i) % choices_.size();
    std::optional<AnswerEvent> event = choices_[index]->Take(index);
    if (!event) continue;
    next_choice_ = index + 1;
    if (event->end) ++num_ended_;
    return event;
  }
  return std::nullopt;
}

}  // namespace quire
