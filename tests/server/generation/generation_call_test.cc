// A call without any transport: its events, and its ends at every stage.
#include "server/generation/generation_call.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/gate.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

class RecordingListener : public GenerationListener {
 public:
  void OnStarted(int64_t num_prompt_tokens) override {
    events.push_back("started");
    CHECK(num_prompt_tokens > 0);
  }
  absl::Status OnChunk(GenerationChunk chunk) override {
    if (events.empty() || events.back() != "chunk") events.push_back("chunk");
    text += chunk.text;
    if (call_on_chunk) std::exchange(call_on_chunk, nullptr)->Cancel();
    return chunk_status;
  }
  void OnFinished(const GenerationResult& end) override {
    events.push_back("finished");
    result.set_value(end);
  }

  std::vector<std::string> events;  // chunks in a row once
  std::string text;
  absl::Status chunk_status;                      // what every chunk is answered with
  std::shared_ptr<GenerationCall> call_on_chunk;  // cancelled by the first chunk
  std::promise<GenerationResult> result;
};

// Everything below a protocol. Declared in the order that calls need: destroyed from below.
struct Fixture {
  explicit Fixture(const TestServerOptions& test_options = {}) : options(test_options) {
    auto owned = std::make_unique<ScriptedModelRunner>(ScriptOf(options), ByteTokenizer::kVocabSize);
    runner = owned.get();
    runner->SetOnExecute(OnExecute(options));
    tokenizer.SetOnEncode(OnEncode(options));
    engine = MakeTestEngine(options, std::move(owned), &clock);
    encoder.emplace(&tokenizer, &chat_template, ByteTokenizer::kVocabSize, options.max_model_len);
  }
  // As a server does: the engine takes nothing more and has told every end before the text executor goes.
  ~Fixture() {
    OpenGates(options);
    engine->StartDraining();
    engine->CancelAll(absl::UnavailableError("the test is over"));
    engine->WaitUntilIdle(TimePoint::max());
  }

  std::shared_ptr<GenerationCall> Start(GenerationInput input) {
    return GenerationCall::Start({.engine = engine.get(),
                                  .text_executor = &executor,
                                  .tokenizer = &tokenizer,
                                  .prompt_encoder = &*encoder,
                                  .clock = &clock,
                                  .metrics = &metrics,
                                  .rate_limiter = &rate_limiter},
                                 std::move(input), listener);
  }
  GenerationInput Input(const std::string& text) const {
    GenerationInput input;
    input.request_id = "test";
    input.tenant = "default";
    input.prompt = TextPrompt{text};
    input.sampling.temperature = 0;
    input.arrival_time = clock.Now();
    return input;
  }
  GenerationResult Result() { return listener->result.get_future().get(); }

  const TestServerOptions options;
  SteadyClock clock;
  prometheus::Registry registry;
  const RequestMetrics metrics{"test-model", &registry};
  RateLimiter rate_limiter{{}, &clock};
  ByteTokenizer tokenizer;
  PlainTemplate chat_template;
  std::optional<PromptEncoder> encoder;
  ScriptedModelRunner* runner = nullptr;  // the engine's
  std::shared_ptr<RecordingListener> listener = std::make_shared<RecordingListener>();
  // The executor ends before the engine: its jobs use it.
  std::unique_ptr<EngineLoop> engine;
  TextExecutor executor{2, 1, 1 << 20};
};

TEST_CASE("a call starts, brings text and finishes once") {
  Fixture f;
  const auto call = f.Start(f.Input("p"));
  const GenerationResult result = f.Result();
  CHECK(result.status.ok());
  CHECK(result.finish_reason == FinishReason::kStopToken);
  CHECK(f.listener->text == "hello");
  CHECK(f.listener->events == std::vector<std::string>{"started", "chunk", "finished"});
  call->Cancel();  // too late to matter
}

TEST_CASE("a call cancelled while its prompt is encoded ends at once and never reaches the engine") {
  Gate gate;
  Fixture f({.encode_gate = &gate});
  const auto call = f.Start(f.Input("p"));
  gate.WaitUntilHeld();
  call->Cancel();
  call->Cancel();
  CHECK(f.Result().status.code() == absl::StatusCode::kCancelled);
  gate.Open();
  CHECK(f.listener->events == std::vector<std::string>{"finished"});
  CHECK(f.engine->num_open_requests() == 0);
  CHECK(f.runner->num_steps() == 0);
}

TEST_CASE("more prompts than may wait are refused with a delay") {
  Gate gate;
  Fixture f({.encode_gate = &gate});
  const auto encoding = f.Start(f.Input("encoding"));
  gate.WaitUntilHeld();
  f.listener = std::make_shared<RecordingListener>();
  const auto waiting = f.Start(f.Input("waiting"));
  f.listener = std::make_shared<RecordingListener>();
  const auto refused = f.Start(f.Input("refused"));
  CHECK(f.Result().status.code() == absl::StatusCode::kResourceExhausted);
  gate.Open();
}

TEST_CASE("a call cancelled while it generates ends with what it has") {
  Fixture f({.script_ends = false, .max_model_len = 1 << 20, .num_blocks = 1 << 16});
  // Held back until the listener knows the call that it cancels.
  Gate gate;
  f.tokenizer.SetOnEncode([&gate] { gate.Pass(); });
  const auto call = f.Start(f.Input("p"));
  f.listener->call_on_chunk = call;
  gate.Open();
  CHECK(f.Result().status.code() == absl::StatusCode::kCancelled);
  CHECK(f.listener->events == std::vector<std::string>{"started", "chunk", "finished"});
  CHECK(f.engine->GetStats(false).cache.num_used_blocks == 0);
}

TEST_CASE("a listener that can take no more ends the call with its own error, and gets nothing further") {
  Fixture f({.script_ends = false, .max_model_len = 1 << 20, .num_blocks = 1 << 16});
  f.listener->chunk_status = absl::ResourceExhaustedError("full");
  const auto call = f.Start(f.Input("p"));
  const GenerationResult result = f.Result();
  CHECK(result.status == absl::ResourceExhaustedError("full"));
  CHECK(result.finish_reason == FinishReason::kUnspecified);
  CHECK(f.listener->text.size() == 1);
  CHECK(f.engine->GetStats(false).cache.num_used_blocks == 0);
}

TEST_CASE("an answer that ended well but could not be taken whole is an error all the same") {
  Fixture f({.script = "h"});
  f.listener->chunk_status = absl::ResourceExhaustedError("full");
  const auto call = f.Start(f.Input("p"));
  CHECK(f.Result().status == absl::ResourceExhaustedError("full"));
}

TEST_CASE("a deadline that has passed is told before anything is computed") {
  Fixture f;
  GenerationInput input = f.Input("p");
  input.deadline = input.arrival_time;
  f.Start(std::move(input));
  CHECK(f.Result().status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(f.runner->num_steps() == 0);
}

TEST_CASE("what the engine refuses ends the call without a start") {
  Fixture f;
  GenerationInput input = f.Input("p");
  input.sampling.top_p = 2;
  f.Start(std::move(input));
  CHECK(f.Result().status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(f.listener->events == std::vector<std::string>{"finished"});
}

TEST_CASE("a stop string ends the request in the engine, and its tokens past the stop count for nothing") {
  Fixture f({.script = "abcdef", .script_ends = false, .max_model_len = 1 << 20, .num_blocks = 1 << 16});
  GenerationInput input = f.Input("p");
  input.sampling.stop_strings = {"fab"};
  f.Start(std::move(input));
  const GenerationResult result = f.Result();
  CHECK(result.status.ok());
  CHECK(result.finish_reason == FinishReason::kStopString);
  CHECK(result.num_output_tokens == 8);
  CHECK(f.listener->text == "abcde");
  CHECK(f.runner->num_steps() < 1 << 19);
}

}  // namespace
}  // namespace quire::testing
