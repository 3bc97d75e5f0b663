// Everything that is not generation or the cache: health, reflection, draining, tokenizing, model information.
#include <catch2/catch_test_macros.hpp>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/server/gate.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

using grpc::health::v1::HealthCheckResponse;

// One question to the reflection service, as bytes: its messages are not among quire's.
class ReflectionQuestion : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ReflectionQuestion(const std::shared_ptr<grpc::Channel>& channel, const std::string& request) : stub_(channel) {
    const grpc::Slice slice(request);
    request_ = grpc::ByteBuffer(&slice, 1);
    stub_.PrepareBidiStreamingCall(&context_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {},
                                   this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&response_);
    StartCall();
  }
  std::string Answer() {
    done_.get_future().wait();
    return answer_;
  }
  void OnReadDone(bool ok) override {
    grpc::Slice slice;
    if (ok && response_.DumpToSingleSlice(&slice).ok()) {
      answer_.assign(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  void OnDone(const grpc::Status&) override { done_.set_value(); }

 private:
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  std::string answer_;
  std::promise<void> done_;
};

std::string Field(int number, const std::string& value) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(value.size()) + value;
}

TEST_CASE("reflection lists every service and describes it") {
  TestServer server;
  const std::string services[] = {"quire.v1.Generation", "quire.v1.Cache", "quire.v1.Admin", "grpc.health.v1.Health",
                                  "inference.GRPCInferenceService"};
  const std::string list = ReflectionQuestion(server.channel(), Field(7, "*")).Answer();
  for (const std::string& service : services) {
    INFO(service);
    CHECK(list.find(service) != std::string::npos);
    const std::string file = ReflectionQuestion(server.channel(), Field(4, service)).Answer();
    CHECK(file.find(".proto") != std::string::npos);
    CHECK(file.find(service.substr(service.rfind('.') + 1)) != std::string::npos);
  }
}

TEST_CASE("health is told for the whole and for each service") {
  TestServer server;
  for (const char* service :
       {"", "quire.v1.Generation", "quire.v1.Cache", "quire.v1.Admin", "inference.GRPCInferenceService"}) {
    CHECK(HealthOf(server.channel(), service) == HealthCheckResponse::SERVING);
  }
  CHECK(HealthOf(server.channel(), "no.such.Service") == HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_CASE("health answers NOT_SERVING while draining") {
  Gate gate;
  TestServer server({.execute_gate = &gate});
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  gate.WaitUntilHeld();
  std::thread shutdown([&server] { server.server().Shutdown(std::chrono::hours(1)); });
  CHECK(PollHealth(server.channel(), "quire.v1.Generation", HealthCheckResponse::NOT_SERVING));
  CHECK(PollHealth(server.channel(), "", HealthCheckResponse::NOT_SERVING));
  gate.Open();
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().ok());
  shutdown.join();
}

TEST_CASE("health and running streams go on while two huge prompts are being encoded") {
  Gate gate;
  std::atomic<bool> hold = false;
  TestServer server(
      {.script = "abcdefgh", .script_ends = false, .max_model_len = 1 << 20, .num_blocks = 1 << 17, .on_encode = [&] {
         if (hold) gate.Pass();
       }});
  grpc::ClientContext running_context;
  const auto running = server.generation().GenerateStream(&running_context, TextRequest("p"));
  v1::GenerateStreamResponse response;
  REQUIRE(running->Read(&response));
  hold = true;
  const std::string huge(5 << 20, 'x');
  grpc::ClientContext first_context;
  const auto first = server.generation().GenerateStream(&first_context, TextRequest(huge));
  grpc::ClientContext second_context;
  const auto second = server.generation().GenerateStream(&second_context, TextRequest(huge));
  gate.WaitUntilHeld();
  CHECK(HealthOf(server.channel(), "") == HealthCheckResponse::SERVING);
  for (int i = 0; i < 100; ++i) REQUIRE(running->Read(&response));
  running_context.TryCancel();
  CHECK(running->Finish().error_code() == grpc::CANCELLED);
  second_context.TryCancel();
  CHECK(second->Finish().error_code() == grpc::CANCELLED);
  CHECK(HealthOf(server.channel(), "quire.v1.Generation") == HealthCheckResponse::SERVING);
  first_context.TryCancel();
  CHECK(first->Finish().error_code() == grpc::CANCELLED);
  gate.Open();
  CHECK(server.PollUntilIdle());
}

TEST_CASE("texts become tokens and back") {
  TestServer server;
  grpc::ClientContext context;
  v1::TokenizeRequest request;
  request.set_text("h\xC3\xA9");
  v1::TokenizeResponse tokens;
  REQUIRE(server.generation().Tokenize(&context, request, &tokens).ok());
  CHECK(tokens.token_ids_size() == 3);
  CHECK(tokens.token_texts(0) == "h");
  CHECK(tokens.token_texts(1) == "\xEF\xBF\xBD");
  CHECK(tokens.max_model_len() == 1024);

  grpc::ClientContext back_context;
  v1::DetokenizeRequest back;
  *back.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse text;
  REQUIRE(server.generation().Detokenize(&back_context, back, &text).ok());
  CHECK(text.text() == "h\xC3\xA9");

  grpc::ClientContext bad_context;
  back.add_token_ids(258);
  CHECK(server.generation().Detokenize(&bad_context, back, &text).error_code() == grpc::INVALID_ARGUMENT);
  grpc::ClientContext empty_context;
  CHECK(server.generation().Tokenize(&empty_context, {}, &tokens).error_code() == grpc::INVALID_ARGUMENT);
}

TEST_CASE("the model is described under its name only") {
  TestServer server;
  grpc::ClientContext list_context;
  v1::ListModelsResponse list;
  REQUIRE(server.generation().ListModels(&list_context, {}, &list).ok());
  REQUIRE(list.models_size() == 1);
  CHECK(list.models(0).name() == "test-model");
  CHECK(list.models(0).has_chat_template());
  CHECK(list.models(0).vocab_size() == ByteTokenizer::kVocabSize);

  grpc::ClientContext other_context;
  v1::GetModelInfoRequest request;
  request.set_model("other");
  v1::ModelInfo info;
  CHECK(server.generation().GetModelInfo(&other_context, request, &info).error_code() == grpc::NOT_FOUND);
}

TEST_CASE("a refusal of something long arrives as what it is") {
  TestServer server;
  grpc::ClientContext context;
  v1::GetModelInfoRequest request;
  request.set_model(std::string(100'000, 'x'));
  v1::ModelInfo info;
  CHECK(server.generation().GetModelInfo(&context, request, &info).error_code() == grpc::NOT_FOUND);
}

TEST_CASE("an operator's drain refuses the new and lets the accepted finish") {
  Gate gate;
  TestServer server({.execute_gate = &gate});
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  gate.WaitUntilHeld();
  grpc::ClientContext drain_context;
  v1::DrainResponse drained;
  REQUIRE(server.admin().Drain(&drain_context, {}, &drained).ok());
  CHECK(drained.open_requests() == 1);
  CHECK(HealthOf(server.channel(), "") == HealthCheckResponse::NOT_SERVING);
  grpc::ClientContext late_context;
  v1::GenerateResponse late;
  CHECK(server.generation().Generate(&late_context, TextRequest("late"), &late).error_code() == grpc::UNAVAILABLE);
  gate.Open();
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().ok());
}

TEST_CASE("a tenant that can't be is refused") {
  TestServer server;
  grpc::ClientContext context;
  context.AddMetadata("x-tenant-id", std::string(65, 't'));
  v1::GenerateResponse response;
  CHECK(server.generation().Generate(&context, TextRequest("p"), &response).error_code() == grpc::INVALID_ARGUMENT);
}

TEST_CASE("a request's id is taken from metadata, and told in the answer's") {
  TestServer server;
  const auto id_of = [&](const std::string& field, const std::string& metadata) {
    grpc::ClientContext context;
    if (!metadata.empty()) context.AddMetadata("x-request-id", metadata);
    v1::GenerateRequest request = TextRequest("abc");
    request.set_request_id(field);
    v1::GenerateResponse response;
    REQUIRE(server.generation().Generate(&context, request, &response).ok());
    const auto told = context.GetServerInitialMetadata().find("x-request-id");
    if (told == context.GetServerInitialMetadata().end()) return response.request_id() + ", not told";
    CHECK(std::string(told->second.data(), told->second.size()) == response.request_id());
    return response.request_id();
  };
  CHECK(id_of("", "from-metadata") == "from-metadata");
  CHECK(id_of("from-field", "from-metadata") == "from-field");
  CHECK(id_of("", "").starts_with("gen-"));
  CHECK(id_of("caf\xC3\xA9", "") == "caf\xC3\xA9, not told");  // metadata is ASCII
}

TEST_CASE("a port in use is refused") {
  TestServer server;
  ServerConfig config;
  config.grpc_listen = server.address();
  const SteadyClock clock;
  ServedModel model;
  model.tokenizer = std::make_unique<ByteTokenizer>();
  model.memory.block_size = 16;
  const auto second = Server::Start(
      config, *LoadSecurity(config.api_keys, /*tenants_are_set=*/false, config.tls, &clock), std::move(model), &clock);
  CHECK(second.status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire::testing
