#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/token_sink.h"
#include "quire/v1/generation.pb.h"
#include "server/generation/generation_call.h"
#include "server/messages/stream_memory.h"

namespace quire {

// What happened to one choice of an answer: a piece of it, or its end.
struct AnswerEvent {
  size_t choice = 0;
  v1::StreamChunk chunk;
  std::optional<GenerationResult> end;  // then there is no chunk
};

// The answer to an HTTP request: a generation call for each choice, whose events the connection's thread takes. They
// wait in outboxes bounded by `memory`, as those of gRPC streams.
class HttpAnswer {
 public:
  // True once the client has closed its connection.
  using IsGone = std::function<bool()>;

  // `memory` and the pipeline's parts must outlive the answer and its calls.
  HttpAnswer(const GenerationPipeline& pipeline, StreamMemory* memory, std::vector<GenerationInput> inputs,
             IsGone is_gone);
  // Ends the calls that have not ended.
  ~HttpAnswer();
  HttpAnswer(const HttpAnswer&) = delete;
  HttpAnswer& operator=(const HttpAnswer&) = delete;

  // Waits until all choices have started; the status of the first that could not, or CANCELLED for a client that is
  // gone.
  absl::Status WaitForStart();

  // The next event; nothing after the end of every choice, or if the client is gone.
  std::optional<AnswerEvent> Next();

 private:
  class Choice;
  struct Mailbox;

  std::optional<AnswerEvent> Take();

  const IsGone is_gone_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<std::shared_ptr<Choice>> choices_;
  std::vector<std::shared_ptr<GenerationCall>> calls_;
  size_t num_ended_ = 0;    // whose ends were taken
  size_t next_choice_ = 0;  // is looked at first: none waits for the others
};

}  // namespace quire
