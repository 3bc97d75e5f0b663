// Messages of the Open Inference Protocol: what is read, what is refused by name, and what is answered.
#include "server/kserve/infer_request.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/kserve/infer_parameters.h"
#include "server/kserve/infer_response.h"

namespace quire::testing {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;

ModelInferRequest TextRequest(const std::string& text = "hi") {
  ModelInferRequest request;
  auto* input = request.add_inputs();
  input->set_name("text_input");
  input->set_datatype("BYTES");
  input->add_shape(1);
  input->mutable_contents()->add_bytes_contents(text);
  return request;
}

ModelInferRequest RawRequest(const std::string& raw) {
  ModelInferRequest request = TextRequest();
  request.mutable_inputs(0)->clear_contents();
  request.add_raw_input_contents(raw);
  return request;
}

InferParameter Bool(bool value) {
  InferParameter parameter;
  parameter.set_bool_param(value);
  return parameter;
}

InferParameter Int(int64_t value) {
  InferParameter parameter;
  parameter.set_int64_param(value);
  return parameter;
}

InferParameter Unsigned(uint64_t value) {
  InferParameter parameter;
  parameter.set_uint64_param(value);
  return parameter;
}

InferParameter Double(double value) {
  InferParameter parameter;
  parameter.set_double_param(value);
  return parameter;
}

InferParameter String(const std::string& value) {
  InferParameter parameter;
  parameter.set_string_param(value);
  return parameter;
}

template <typename Value>
std::string RefusedField(const absl::StatusOr<Value>& result) {
  CHECK(result.status().code() == absl::StatusCode::kInvalidArgument);
  return FieldOf(result.status()).value_or("");
}

TEST_CASE("a text comes in contents or raw, in one dimension or two") {
  const auto plain = ParseInferRequest(TextRequest("some text"));
  REQUIRE(plain.ok());
  CHECK(plain->text == "some text");
  CHECK_FALSE(plain->form.is_raw);
  CHECK(plain->form.shape == std::vector<int64_t>{1});

  ModelInferRequest request = RawRequest(std::string("\x03\0\0\0abc", 7));
  request.mutable_inputs(0)->add_shape(1);
  request.mutable_inputs(0)->set_name("prompt");
  const auto raw = ParseInferRequest(request);
  REQUIRE(raw.ok());
  CHECK(raw->text == "abc");
  CHECK(raw->form.is_raw);
  CHECK(raw->form.shape == std::vector<int64_t>{1, 1});
}

TEST_CASE("a text's length in raw contents takes four bytes") {
  const std::string text(70'000, 'x');
  const std::string raw = RawOfText(text);
  CHECK(raw.substr(0, 4) == std::string("\x70\x11\x01\x00", 4));
  CHECK(TextOfRaw("f", raw).value_or("refused") == text);
  CHECK(TextOfRaw("f", RawOfText("")).value_or("refused").empty());
  for (const std::string& broken : {std::string(), std::string(3, '\0'), raw.substr(0, 100), raw + "x", raw + raw}) {
    CHECK(RefusedField(TextOfRaw("f", broken)) == "f");
  }
}

TEST_CASE("tensors that are not one text are refused by name") {
  struct Case {
    std::string field;
    std::function<void(ModelInferRequest&)> spoil;
  };
  const std::vector<Case> cases = {
      {"inputs", [](auto& r) { r.clear_inputs(); }},
      {"inputs", [](auto& r) { *r.add_inputs() = r.inputs(0); }},
      {"inputs[0].name", [](auto& r) { r.mutable_inputs(0)->set_name("image"); }},
      {"inputs[0].datatype", [](auto& r) { r.mutable_inputs(0)->set_datatype("FP32"); }},
      {"inputs[0].datatype", [](auto& r) { r.mutable_inputs(0)->clear_datatype(); }},
      {"inputs[0].shape", [](auto& r) { r.mutable_inputs(0)->clear_shape(); }},
      {"inputs[0].shape", [](auto& r) { r.mutable_inputs(0)->set_shape(0, 2); }},
      {"inputs[0].shape", [](auto& r) { r.mutable_inputs(0)->set_shape(0, -1); }},
      {"inputs[0].shape", [](auto& r) { r.mutable_inputs(0)->mutable_shape()->Resize(3, 1); }},
      {"inputs[0].contents.bytes_contents", [](auto& r) { r.mutable_inputs(0)->clear_contents(); }},
      {"inputs[0].contents.bytes_contents",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_bytes_contents("b"); }},
      {"inputs[0].contents.bytes_contents",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->set_bytes_contents(0, "\xFF"); }},
      {"inputs[0].contents.bytes_contents", [](auto& r) { r.add_raw_input_contents(RawOfText("abc")); }},
      {"raw_input_contents",
       [](auto& r) {
         r = RawRequest(RawOfText("a"));
         r.add_raw_input_contents(RawOfText("b"));
       }},
      {"raw_input_contents[0]", [](auto& r) { r = RawRequest("abc"); }},
      {"raw_input_contents[0]", [](auto& r) { r = RawRequest(RawOfText("\xFF")); }},
      {"inputs[0].parameters.shared_memory_region",
       [](auto& r) { (*r.mutable_inputs(0)->mutable_parameters())["shared_memory_region"] = String("here"); }},
      {"inputs[0].parameters.content_type",
       [](auto& r) { (*r.mutable_inputs(0)->mutable_parameters())["content_type"] = String("base64"); }},
      {"outputs[0].name", [](auto& r) { r.add_outputs()->set_name("logits"); }},
      {"outputs[1].parameters.classification",
       [](auto& r) {
         r.add_outputs()->set_name("text_output");
         r.add_outputs()->set_name("text_output");
         (*r.mutable_outputs(1)->mutable_parameters())["classification"] = Int(3);
       }},
  };
  for (const Case& c : cases) {
    ModelInferRequest request = TextRequest();
    c.spoil(request);
    INFO(request.ShortDebugString());
    CHECK(RefusedField(ParseInferRequest(request)) == c.field);
  }
}

TEST_CASE("harmless words about tensors change nothing") {
  ModelInferRequest request = TextRequest();
  (*request.mutable_inputs(0)->mutable_parameters())["content_type"] = String("str");
  auto* output = request.add_outputs();
  output->set_name("text_output");
  (*output->mutable_parameters())["binary_data"] = Bool(true);
  CHECK(ParseInferRequest(request).ok());
}

TEST_CASE("parameters are read") {
  ParameterMap parameters;
  parameters["max_tokens"] = Int(9);
  parameters["temperature"] = Double(0.5);
  parameters["top_p"] = String("0.25");
  parameters["top_k"] = Unsigned(7);
  parameters["min_p"] = Double(0.125);
  parameters["repetition_penalty"] = Int(2);
  parameters["seed"] = Int(42);
  parameters["stop"] = String("12");
  parameters["stop_token_ids"] = Int(5);
  parameters["ignore_eos"] = Bool(true);
  parameters["skip_special_tokens"] = Bool(false);
  parameters["cache_salt"] = String("3");
  parameters["priority"] = Unsigned(4);
  parameters["timeout"] = Int(1'500'000);
  const auto parsed = ParseInferParameters(parameters);
  REQUIRE(parsed.ok());
  CHECK(parsed->sampling.max_tokens == 9);
  CHECK(parsed->sampling.temperature == 0.5F);
  CHECK(parsed->sampling.top_p == 0.25F);
  CHECK(parsed->sampling.top_k == 7);
  CHECK(parsed->sampling.min_p == 0.125F);
  CHECK(parsed->sampling.repetition_penalty == 2.0F);
  CHECK(parsed->sampling.seed == 42U);
  CHECK(parsed->sampling.stop_strings == std::vector<std::string>{"12"});
  CHECK(parsed->sampling.stop_token_ids == std::vector<TokenId>{5});
  CHECK(parsed->sampling.ignore_eos);
  CHECK(parsed->include_special_tokens);
  CHECK(parsed->cache_salt == "3");
  CHECK(parsed->priority == 4);
  CHECK(parsed->timeout_seconds == 1.5);
}

TEST_CASE("without parameters there are defaults, and Triton's own change nothing") {
  ParameterMap parameters;
  SECTION("none") {}
  SECTION("of sequences") {
    parameters["sequence_id"] = GENERATE(Int(7), String("seven"));
    parameters["sequence_start"] = Bool(true);
    parameters["sequence_end"] = Bool(false);
  }
  SECTION("at their defaults") {
    parameters["priority"] = Unsigned(0);
    parameters["timeout"] = Int(0);
    parameters["stream"] = Bool(false);
    parameters["exclude_input_in_output"] = Bool(true);
    parameters["frequency_penalty"] = Double(0);
    parameters["temperature"] = InferParameter();
  }
  const auto parsed = ParseInferParameters(parameters);
  REQUIRE(parsed.ok());
  CHECK(parsed->sampling.temperature == SamplingParams().temperature);
  CHECK_FALSE(parsed->sampling.max_tokens);
  CHECK_FALSE(parsed->sampling.seed);
  CHECK(parsed->sampling.stop_strings.empty());
  CHECK(parsed->sampling.stop_token_ids.empty());
  CHECK_FALSE(parsed->include_special_tokens);
  CHECK_FALSE(parsed->timeout_seconds);
  CHECK(parsed->priority == 0);
}

TEST_CASE("parameters that can't be are refused by name") {
  const auto [field, value] = GENERATE(table<std::string, InferParameter>({
      {"temperature", String("warm")},
      {"temperature", String("0.5 or so")},
      {"temperature", String("")},
      {"temperature", Bool(true)},
      {"max_tokens", Int(0)},
      {"max_tokens", Double(1.5)},
      {"max_tokens", String("8")},
      {"top_k", Int(int64_t{1} << 31)},
      {"seed", Unsigned(uint64_t{1} << 63)},
      {"stop", Int(1)},
      {"stop_token_ids[0]", Int(-1)},
      {"stop_token_ids[0]", String("1,2")},
      {"ignore_eos", Int(1)},
      {"priority", Unsigned(uint64_t{1} << 40)},
      {"timeout", Int(-1)},
      {"timeout", Int(int64_t{366} * 24 * 3600 * 1'000'000)},
      {"presence_penalty", Double(0.5)},
      {"stream", Bool(true)},
      {"exclude_input_in_output", Bool(false)},
      {"n", Int(2)},
      {"messages", String("[]")},
      {"text", String("t")},
      {"", Int(1)},
  }));
  INFO(field << " " << value.ShortDebugString());
  ParameterMap parameters;
  parameters[field.substr(0, field.find('['))] = value;
  CHECK(RefusedField(ParseInferParameters(parameters)) == field);
}

TEST_CASE("one version is served") {
  CHECK(CheckModelVersion("").ok());
  CHECK(CheckModelVersion("1").ok());
  CHECK(CheckModelVersion("2").code() == absl::StatusCode::kNotFound);
}

TEST_CASE("an answer has the form of its request") {
  WholeAnswer answer;
  answer.request_id = "mine";
  answer.output.set_text("text");
  answer.result.finish_reason = FinishReason::kLength;
  answer.result.num_prompt_tokens = 3;
  answer.result.num_output_tokens = 4;
  answer.result.num_cached_prompt_tokens = 2;
  const auto plain = ToInferResponse(answer, {.is_raw = false, .shape = {1, 1}}, "m");
  CHECK(plain.model_name() == "m");
  CHECK(plain.model_version() == "1");
  CHECK(plain.id() == "mine");
  CHECK(plain.parameters().at("finish_reason").string_param() == "length");
  CHECK(plain.parameters().at("prompt_tokens").int64_param() == 3);
  CHECK(plain.parameters().at("completion_tokens").int64_param() == 4);
  CHECK(plain.parameters().at("cached_prompt_tokens").int64_param() == 2);
  REQUIRE(plain.outputs_size() == 1);
  CHECK(plain.outputs(0).name() == "text_output");
  CHECK(plain.outputs(0).datatype() == "BYTES");
  CHECK(plain.outputs(0).shape_size() == 2);
  REQUIRE(plain.outputs(0).contents().bytes_contents_size() == 1);
  CHECK(plain.outputs(0).contents().bytes_contents(0) == "text");
  CHECK(plain.raw_output_contents_size() == 0);

  const auto raw = ToInferResponse(answer, {.is_raw = true, .shape = {1}}, "m");
  REQUIRE(raw.outputs_size() == 1);
  CHECK(raw.outputs(0).shape_size() == 1);
  CHECK_FALSE(raw.outputs(0).has_contents());
  REQUIRE(raw.raw_output_contents_size() == 1);
  CHECK(raw.raw_output_contents(0) == std::string("\x04\0\0\0text", 8));
}

}  // namespace
}  // namespace quire::testing
