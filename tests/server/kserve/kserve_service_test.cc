// The Open Inference Protocol over a real socket.
#include "server/kserve/kserve_service.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/security/api_keys.h"
#include "tests/server/gate.h"
#include "tests/server/test_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {
namespace {

using Api = inference::GRPCInferenceService;
using inference::InferParameter;

struct Fixture {
  explicit Fixture(const TestServerOptions& options = {}) : server(options), stub(Api::NewStub(server.channel())) {}

  TestServer server;
  std::unique_ptr<Api::Stub> stub;
};

template <typename Response, typename Request>
grpc::Status Call(Api::Stub& stub, grpc::Status (Api::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response* response, const std::string& key = "") {
  grpc::ClientContext context;
  if (!key.empty()) context.AddMetadata("authorization", "Bearer " + key);
  return (stub.*method)(&context, request, response);
}

template <typename Response, typename Request>
Response Ask(Fixture& f, grpc::Status (Api::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
             const Request& request = {}) {
  Response response;
  const grpc::Status status = Call(*f.stub, method, request, &response);
  INFO(status.error_message());
  REQUIRE(status.ok());
  return response;
}

inference::ModelInferRequest InferRequestFor(const std::string& text) {
  inference::ModelInferRequest request;
  request.set_model_name("test-model");
  auto* input = request.add_inputs();
  input->set_name("text_input");
  input->set_datatype("BYTES");
  input->add_shape(1);
  input->mutable_contents()->add_bytes_contents(text);
  (*request.mutable_parameters())["temperature"].set_int64_param(0);
  return request;
}

// Of an answer in contents.
std::string TextOf(const inference::ModelInferResponse& response) {
  REQUIRE(response.outputs_size() == 1);
  REQUIRE(response.outputs(0).contents().bytes_contents_size() == 1);
  return response.outputs(0).contents().bytes_contents(0);
}

InferParameter ParameterOf(const inference::ModelInferResponse& response, const std::string& name) {
  const auto found = response.parameters().find(name);
  return found == response.parameters().end() ? InferParameter() : found->second;
}

std::string ViolatedField(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::BadRequest bad_request;
  details.ParseFromString(status.error_details());
  for (const auto& detail : details.details()) {
    if (detail.UnpackTo(&bad_request)) return bad_request.field_violations(0).field();
  }
  return "";
}

std::string TextOfGenerate(TestServer& server, const std::string& prompt, int64_t max_tokens) {
  v1::GenerateRequest request = TextRequest(prompt);
  request.mutable_sampling()->set_max_tokens(max_tokens);
  grpc::ClientContext context;
  v1::GenerateResponse response;
  REQUIRE(server.generation().Generate(&context, request, &response).ok());
  return response.outputs(0).text();
}

TEST_CASE("inference gives the text that Generate gives, raw and in contents") {
  Fixture f({.script = "grin \xF0\x9F\x98\x80 and on", .script_ends = false});
  const std::string text = TextOfGenerate(f.server, "abc", 12);
  REQUIRE(text == "grin \xF0\x9F\x98\x80 an");
  inference::ModelInferRequest request = InferRequestFor("abc");
  request.set_id("mine");
  request.set_model_version("1");
  (*request.mutable_parameters())["max_tokens"].set_int64_param(12);
  const auto plain = Ask(f, &Api::Stub::ModelInfer, request);
  CHECK(TextOf(plain) == text);
  CHECK(plain.raw_output_contents_size() == 0);
  CHECK(plain.id() == "mine");
  CHECK(plain.model_name() == "test-model");
  CHECK(ParameterOf(plain, "finish_reason").string_param() == "length");
  CHECK(ParameterOf(plain, "prompt_tokens").int64_param() == 3);
  CHECK(ParameterOf(plain, "completion_tokens").int64_param() == 12);

  request.mutable_inputs(0)->clear_contents();
  request.add_raw_input_contents(RawOfText("abc"));
  const auto raw = Ask(f, &Api::Stub::ModelInfer, request);
  REQUIRE(raw.outputs_size() == 1);
  REQUIRE(raw.raw_output_contents_size() == 1);
  CHECK(raw.raw_output_contents(0) == RawOfText(text));
  CHECK_FALSE(raw.outputs(0).has_contents());
  CHECK(f.server.PollUntilIdle());
}

TEST_CASE("a stop string ends the text") {
  Fixture f({.script = "one STOP two"});
  inference::ModelInferRequest request = InferRequestFor("abc");
  (*request.mutable_parameters())["stop"].set_string_param("STOP");
  const auto answer = Ask(f, &Api::Stub::ModelInfer, request);
  CHECK(TextOf(answer) == "one ");
  CHECK(ParameterOf(answer, "finish_reason").string_param() == "stop_string");
  CHECK_FALSE(answer.id().empty());
}

TEST_CASE("what the protocol has and this server does not read is skipped") {
  Fixture f;
  inference::ModelInferRequest request = InferRequestFor("abc");
  auto* contents = request.mutable_inputs(0)->mutable_contents();
  contents->GetReflection()->MutableUnknownFields(contents)->AddVarint(2, 7);  // int_contents
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(99, "new");
  CHECK(TextOf(Ask(f, &Api::Stub::ModelInfer, request)) == "hello");
}

TEST_CASE("another model or version is not found") {
  Fixture f;
  inference::ModelInferResponse response;
  inference::ModelInferRequest request = InferRequestFor("abc");
  request.set_model_version("2");
  CHECK(Call(*f.stub, &Api::Stub::ModelInfer, request, &response).error_code() == grpc::NOT_FOUND);
  request.clear_model_version();
  request.set_model_name("other");
  CHECK(Call(*f.stub, &Api::Stub::ModelInfer, request, &response).error_code() == grpc::NOT_FOUND);

  inference::ModelMetadataRequest metadata_request;
  inference::ModelMetadataResponse metadata;
  metadata_request.set_name("other");
  CHECK(Call(*f.stub, &Api::Stub::ModelMetadata, metadata_request, &metadata).error_code() == grpc::NOT_FOUND);
}

TEST_CASE("errors name the field or the parameter, by the protocol's names") {
  Fixture f;
  inference::ModelInferRequest request = InferRequestFor("abc");
  auto& parameters = *request.mutable_parameters();
  std::string field;
  SECTION("by the engine") {
    parameters["temperature"].set_double_param(-1);
    field = "temperature";
  }
  SECTION("by the engine, of scheduling") {
    parameters["priority"].set_int64_param(101);
    field = "priority";
  }
  SECTION("by the engine, under another name") {
    parameters["stop"].set_string_param("");
    field = "stop[0]";
  }
  SECTION("unknown") {
    parameters["text_of_mine"].set_int64_param(1);
    field = "text_of_mine";
  }
  SECTION("by the prompt's check") {
    request.mutable_inputs(0)->mutable_contents()->set_bytes_contents(0, "");
    field = "text_input";
  }
  SECTION("the id") {
    request.set_id("a\nb");
    field = "id";
  }
  SECTION("the tensor") {
    request.mutable_inputs(0)->set_datatype("INT32");
    field = "inputs[0].datatype";
  }
  SECTION("two tensors") {
    *request.add_inputs() = request.inputs(0);
    field = "inputs";
  }
  inference::ModelInferResponse response;
  const grpc::Status status = Call(*f.stub, &Api::Stub::ModelInfer, request, &response);
  CHECK(status.error_code() == grpc::INVALID_ARGUMENT);
  CHECK(ViolatedField(status) == field);
  CHECK(status.error_message().starts_with(field + ": "));
}

TEST_CASE("a cancelled inference gives its blocks back") {
  Fixture f(EndlessAnswers());
  grpc::ClientContext context;
  grpc::Status status;
  std::thread caller([&] {
    inference::ModelInferResponse response;
    status = f.stub->ModelInfer(&context, InferRequestFor("abc"), &response);
  });
  CHECK(f.server.PollStats([](const auto& stats) { return stats.blocks_used() > 0; }));
  context.TryCancel();
  caller.join();
  CHECK(status.error_code() == grpc::CANCELLED);
  CHECK(f.server.PollUntilIdle());
  CHECK(f.server.runner().num_steps() < kEndless / 2);
}

TEST_CASE("a timeout in microseconds ends an inference, and so does the call's deadline") {
  Fixture f(EndlessAnswers());
  inference::ModelInferRequest request = InferRequestFor("abc");
  inference::ModelInferResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  CHECK(f.stub->ModelInfer(&context, request, &response).error_code() == grpc::DEADLINE_EXCEEDED);
  (*request.mutable_parameters())["timeout"].set_int64_param(200'000);
  CHECK(Call(*f.stub, &Api::Stub::ModelInfer, request, &response).error_code() == grpc::DEADLINE_EXCEEDED);
  CHECK(f.server.PollUntilIdle());
}

TEST_CASE("metadata says what there is") {
  Fixture f;
  const auto server = Ask(f, &Api::Stub::ServerMetadata);
  CHECK(server.name() == "quire");
  CHECK_FALSE(server.version().empty());
  inference::ModelMetadataRequest request;
  request.set_name("test-model");
  const auto model = Ask(f, &Api::Stub::ModelMetadata, request);
  CHECK(model.name() == "test-model");
  REQUIRE(model.inputs_size() == 1);
  CHECK(model.inputs(0).name() == "text_input");
  CHECK(model.inputs(0).datatype() == "BYTES");
  REQUIRE(model.outputs_size() == 1);
  CHECK(model.outputs(0).name() == "text_output");
  CHECK(model.versions(0) == "1");
}

TEST_CASE("ready is the model that is served, until the server drains") {
  Fixture f;
  const auto is_ready = [&](const std::string& name, const std::string& version) {
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    return Ask(f, &Api::Stub::ModelReady, request).ready();
  };
  CHECK(Ask(f, &Api::Stub::ServerLive).live());
  CHECK(Ask(f, &Api::Stub::ServerReady).ready());
  CHECK(is_ready("test-model", ""));
  CHECK(is_ready("test-model", "1"));
  CHECK_FALSE(is_ready("test-model", "2"));
  CHECK_FALSE(is_ready("other", ""));
  grpc::ClientContext context;
  v1::DrainResponse drained;
  REQUIRE(f.server.admin().Drain(&context, {}, &drained).ok());
  CHECK(Ask(f, &Api::Stub::ServerLive).live());
  CHECK_FALSE(Ask(f, &Api::Stub::ServerReady).ready());
  CHECK_FALSE(is_ready("test-model", ""));
}

TEST_CASE("a server whose engine hangs is not live until it goes on") {
  FakeClock clock;
  Gate gate;
  Fixture f({.execute_gate = &gate, .stall_seconds = 0.1, .clock = &clock});
  grpc::ClientContext context;
  const auto reader = f.server.generation().GenerateStream(&context, TextRequest("p"));
  gate.WaitUntilHeld();
  CHECK(Ask(f, &Api::Stub::ServerLive).live());
  const auto is_live = [&] {
    clock.Advance(std::chrono::seconds(1));
    return Ask(f, &Api::Stub::ServerLive).live();
  };
  int num_polls = 0;
  while (is_live() && num_polls < 20000) ++num_polls;
  CHECK_FALSE(Ask(f, &Api::Stub::ServerLive).live());
  CHECK_FALSE(Ask(f, &Api::Stub::ServerReady).ready());
  gate.Open();
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().ok());
}

TEST_CASE("all but the probes need a key") {
  const TempDir folder;
  const NewApiKey key = *MakeApiKey("team-a", false);
  TestServerOptions options;
  options.api_keys = folder.File("keys.json");
  std::ofstream(options.api_keys) << "{\"keys\": [" << key.entry << "]}";
  Fixture f(options);
  const auto codes = [&](const std::string& sent) {
    inference::ServerMetadataResponse server;
    inference::ModelMetadataResponse model;
    inference::ModelInferResponse answer;
    return std::vector<grpc::StatusCode>{
        Call(*f.stub, &Api::Stub::ServerMetadata, {}, &server, sent).error_code(),
        Call(*f.stub, &Api::Stub::ModelMetadata, {}, &model, sent).error_code(),
        Call(*f.stub, &Api::Stub::ModelInfer, InferRequestFor("abc"), &answer, sent).error_code()};
  };
  CHECK(codes("") == std::vector<grpc::StatusCode>(3, grpc::StatusCode::UNAUTHENTICATED));
  CHECK(codes("quire_wrong") == std::vector<grpc::StatusCode>(3, grpc::StatusCode::UNAUTHENTICATED));
  CHECK(codes(key.key) == std::vector<grpc::StatusCode>(3, grpc::StatusCode::OK));
  CHECK(Ask(f, &Api::Stub::ServerLive).live());
  CHECK(Ask(f, &Api::Stub::ServerReady).ready());
  CHECK(Ask(f, &Api::Stub::ModelReady).ready());
}

}  // namespace
}  // namespace quire::testing
