#include "server/config/server_config.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/config/server_settings.h"
#include "tests/support/temp_dir.h"

namespace quire {
namespace {

absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"quire-server"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

TEST_CASE("flags reach their fields") {
  const auto command = Parse({"--model",
                              "m.gguf",
                              "--served-model-name",
                              "7",
                              "--grpc-listen",
                              "[::1]:0",
                              "--max-model-len",
                              "512",
                              "--max-num-batched-tokens",
                              "64",
                              "--max-num-seqs",
                              "3",
                              "--block-size",
                              "32",
                              "--weight-type",
                              "bf16",
                              "--compute-type",
                              "f32",
                              "--kv-cache-dtype",
                              "f32",
                              "--memory-budget",
                              "2GiB",
                              "--kv-cache-memory-bytes",
                              "1000",
                              "--threads",
                              "2",
                              "--text-threads",
                              "3",
                              "--log-level",
                              "off",
                              "--log-prompts",
                              "--drain-seconds",
                              "1.5",
                              "--max-stream-buffer-bytes",
                              "1KiB",
                              "--stall-seconds",
                              "5",
                              "--no-enable-prefix-caching",
                              "--max-queued-requests",
                              "7",
                              "--max-queued-tokens",
                              "8000",
                              "--target-step-ms",
                              "100",
                              "--priority-aging-seconds",
                              "2.5",
                              "--refuse-late-requests",
                              "--tenants",
                              R"({"a": {"weight": 2, "max_running_requests": 3}, "*": {"max_kv_blocks": 4}})"});
  REQUIRE(command.ok());
  CHECK(command->action == CommandLine::Action::kServe);
  const ServerConfig& config = command->config;
  CHECK(config.model == "m.gguf");
  CHECK(config.served_model_name == "7");
  CHECK(config.grpc_listen == "[::1]:0");
  CHECK(config.engine.max_model_len == 512);
  CHECK(config.engine.max_num_batched_tokens == 64);
  CHECK(config.engine.max_num_seqs == 3);
  CHECK(config.engine.block_size == 32);
  CHECK(config.engine.weight_type == "bf16");
  CHECK(config.engine.compute_type == "f32");
  CHECK(config.engine.kv_cache_dtype == "f32");
  CHECK(config.engine.memory_budget_bytes == int64_t{2} << 30);
  CHECK(config.engine.kv_cache_memory_bytes == 1000);
  CHECK(config.engine.num_threads == 2);
  CHECK(config.text_threads == 3);
  CHECK(config.log_level == "off");
  CHECK(config.log_prompts);
  CHECK(config.drain_seconds == 1.5);
  CHECK(config.max_stream_buffer_bytes == 1024);
  CHECK(config.stall_seconds == 5);
  CHECK_FALSE(config.engine.enable_prefix_caching);
  CHECK(config.engine.max_queued_requests == 7);
  CHECK(config.engine.max_queued_tokens == 8000);
  CHECK(config.engine.target_step_ms == 100);
  CHECK(config.engine.priority_aging_seconds == 2.5);
  CHECK(config.engine.refuse_late_requests);
  REQUIRE(config.engine.tenants.size() == 2);
  CHECK(config.engine.tenants.at("a").weight == 2);
  CHECK(config.engine.tenants.at("a").max_running_requests == 3);
  CHECK_FALSE(config.engine.tenants.at("a").max_kv_blocks);
  CHECK(config.engine.tenants.at("*").weight == 1);
  CHECK(config.engine.tenants.at("*").max_kv_blocks == 4);
}

TEST_CASE("flags win over the file, the file over defaults") {
  const testing::TempDir dir;
  std::ofstream(dir.File("c.json")) << "{ // a comment\n\"model\": \"file.gguf\", \"max_num_seqs\": 5, \"threads\": 2}";
  const auto command = Parse({"--config", dir.File("c.json"), "--max-num-seqs", "6", "--threads", "auto"});
  REQUIRE(command.ok());
  CHECK(command->config.model == "file.gguf");
  CHECK(command->config.engine.max_num_seqs == 6);
  CHECK_FALSE(command->config.engine.num_threads);
  CHECK(command->config.model_name() == "file");
}

TEST_CASE("a bad value is refused with its name") {
  const auto [flag, value, field] = GENERATE(table<const char*, const char*, const char*>({
      {"--max-num-seqs", "0", "max_num_seqs"},
      {"--max-num-seqs", "many", "max_num_seqs"},
      {"--max-num-seqs", "2.5", "max_num_seqs"},
      {"--max-num-seqs", "18446744073709551615", "max_num_seqs"},
      {"--max-num-batched-tokens", "15", "max_num_batched_tokens"},
      {"--max-model-len", "0", "max_model_len"},
      {"--block-size", "24", "block_size"},
      {"--weight-type", "int3", "weight_type"},
      {"--compute-type", "f16", "compute_type"},
      {"--kv-cache-dtype", "f64", "kv_cache_dtype"},
      {"--memory-budget", "2 apples", "memory_budget"},
      {"--memory-budget", "-1", "memory_budget"},
      {"--kv-cache-memory-bytes", "0", "kv_cache_memory_bytes"},
      {"--threads", "0", "threads"},
      {"--text-threads", "1", "text_threads"},
      {"--log-level", "loud", "log_level"},
      {"--drain-seconds", "-1", "drain_seconds"},
      {"--max-stream-buffer-bytes", "0", "max_stream_buffer_bytes"},
      {"--stall-seconds", "0", "stall_seconds"},
      {"--max-queued-requests", "0", "max_queued_requests"},
      {"--max-queued-tokens", "0", "max_queued_tokens"},
      {"--target-step-ms", "0.5", "target_step_ms"},
      {"--target-step-ms", "nan", "target_step_ms"},
      {"--priority-aging-seconds", "0", "priority_aging_seconds"},
      {"--tenants", "{", "tenants"},
      {"--tenants", "[]", "tenants"},
      {"--tenants", R"({"a": 1})", "tenants.a"},
      {"--tenants", R"({"": {}})", "tenants"},
      {"--tenants", R"({"a": {"weight": 0}})", "tenants.a.weight"},
      {"--tenants", R"({"a": {"max_running_requests": 0}})", "tenants.a.max_running_requests"},
      {"--tenants", R"({"a": {"max_kv_blocks": 1.5}})", "tenants.a.max_kv_blocks"},
      {"--tenants", R"({"a": {"priority": 1}})", "tenants.a.priority"},
      {"--grpc-listen", "50051", "grpc_listen"},
      {"--grpc-listen", "host:70000", "grpc_listen"},
      {"--grpc-listen", "::1:50051", "grpc_listen"},
  }));
  const auto command = Parse({"--model", "m.gguf", flag, value});
  INFO(flag << " " << value);
  CHECK(command.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(command.status()) == field);
}

TEST_CASE("unknown flags and keys are refused by name") {
  CHECK(std::string(Parse({"--model", "m", "--no-such-flag", "1"}).status().message()).find("no-such-flag") !=
        std::string::npos);
  ServerConfig config;
  const absl::Status status = ApplyConfigText(R"({"max_num_sequences": 3})", "c.json", &config);
  CHECK(std::string(status.message()).find("max_num_sequences") != std::string::npos);
  CHECK_FALSE(ApplyConfigText("[1]", "c.json", &config).ok());
  CHECK_FALSE(ApplyConfigText("{", "c.json", &config).ok());
  CHECK(FieldOf(ApplyConfigText(R"({"log_prompts": "yes"})", "c.json", &config)) == "log_prompts");
}

TEST_CASE("no value in a file or a flag does more than being refused") {
  ServerConfig config;
  CHECK_FALSE(ApplyConfigText(R"({"stall_seconds": 1e999})", "c.json", &config).ok());
  constexpr size_t kDepth = 2'000'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  for (const std::string key : {"block_size", "max_num_seqs", "model", "tenants", "memory_budget", "log_prompts"}) {
    const absl::Status status = ApplyConfigText("{\"" + key + "\": " + nested + "}", "c.json", &config);
    CHECK(FieldOf(status) == key);
    CHECK(status.message().size() < 1000);
  }
  CHECK(FieldOf(Parse({"--model", "m", "--block-size", "\xFF"}).status()) == "block_size");
}

TEST_CASE("the printed configuration reads back as itself") {
  const auto command = Parse({"--print-config", "--max-num-seqs", "9", "--memory-budget", "1GiB", "--log-prompts",
                              "--no-enable-prefix-caching", "--tenants", R"({"a": {"weight": 0.5}})"});
  REQUIRE(command.ok());
  CHECK(command->action == CommandLine::Action::kPrint);
  ServerConfig read;
  REQUIRE(ApplyConfigText(command->text, "printed", &read).ok());
  CHECK(read.ToJson() == command->text);
  CHECK(read.engine.max_num_seqs == 9);
}

TEST_CASE("the shipped configuration holds every key with its default") {
  std::ifstream file("configs/server_default.json");
  std::stringstream text;
  text << file.rdbuf();
  ServerConfig config;
  config.log_level = "off";
  config.engine.max_num_seqs = 1;
  REQUIRE(ApplyConfigText(text.str(), "configs/server_default.json", &config).ok());
  CHECK(config.ToJson() == ServerConfig{}.ToJson());
  for (const ServerSetting& setting : ServerSettings()) {
    CHECK(text.str().find("\"" + setting.name + "\":") != std::string::npos);
  }
}

TEST_CASE("a dry run is asked for, for people or for programs") {
  const auto command = Parse({"--dry-run", "--model", "a.gguf", "--memory-budget", "2GiB"});
  REQUIRE(command.ok());
  CHECK(command->action == CommandLine::Action::kDryRun);
  CHECK_FALSE(command->as_json);
  CHECK(command->config.engine.memory_budget_bytes == int64_t{2} << 30);
  CHECK(Parse({"--dry-run", "--json", "--model", "a.gguf"})->as_json);
  CHECK_FALSE(Parse({"--json", "--model", "a.gguf"}).ok());
  CHECK(FieldOf(Parse({"--dry-run"}).status()) == "model");
}

TEST_CASE("help, version, inspect and a missing model") {
  CHECK(Parse({"--help"})->text.find("--max-num-batched-tokens") != std::string::npos);
  CHECK(Parse({"--help"})->text.find("Default: 1024") != std::string::npos);
  CHECK(Parse({"--version"})->text.find("quire-server") != std::string::npos);
  CHECK(Parse({"inspect", "a.gguf"})->action == CommandLine::Action::kInspect);
  CHECK(Parse({"inspect", "a.gguf"})->text == "a.gguf");
  CHECK(FieldOf(Parse({}).status()) == "model");
}

}  // namespace
}  // namespace quire
