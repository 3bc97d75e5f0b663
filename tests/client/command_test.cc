// Whole commands against a fake server, in this process.
#include <grpcpp/grpcpp.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/client/fake_server.h"
#include "tests/client/run_quire.h"

namespace quire::testing {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

grpc::Status StreamHello(grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter& writer) {
  return StreamPieces(writer, {"Hel", "lo", " \x1b[2Jworld"});
}

FakeServer::StreamHandler FailWith(grpc::StatusCode code, const std::string& message) {
  return [=](grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter&) { return grpc::Status(code, message); };
}

TEST_CASE("generate prints the streamed text, raw into a pipe and escaped to a terminal") {
  FakeServer server;
  server.on_stream = StreamHello;
  const RunResult piped = RunQuire({"generate", "Say hello", "--address", server.address()});
  CHECK(piped.code == ExitCode::kOk);
  CHECK(piped.out == "Hello \x1b[2Jworld\n");
  CHECK(piped.err.empty());
  const RunResult shown =
      RunQuire({"--address", server.address(), "generate", "x"}, {.input = "", .out_is_terminal = true});
  CHECK(shown.out == "Hello \\x1b[2Jworld\n");
}

TEST_CASE("generate sends what its flags say") {
  FakeServer server;
  server.on_stream = StreamHello;
  const RunResult result = RunQuire({"generate",
                                     "--address",
                                     server.address(),
                                     "--tenant",
                                     "blue",
                                     "--max-tokens",
                                     "9",
                                     "--temperature",
                                     "0",
                                     "--top-k",
                                     "3",
                                     "--top-p",
                                     "0.5",
                                     "--min-p",
                                     "0.25",
                                     "--repetition-penalty",
                                     "1.5",
                                     "--seed",
                                     "42",
                                     "--stop",
                                     "[a,b]",
                                     "--stop",
                                     "\n",
                                     "--stop-token-id",
                                     "2",
                                     "--ignore-eos",
                                     "--logprobs",
                                     "4",
                                     "--system",
                                     "Be brief.",
                                     "--model",
                                     "tiny",
                                     "--priority",
                                     "-3",
                                     "--cache-salt",
                                     "salt",
                                     "--skip-prefix-cache",
                                     "-"},
                                    {.input = "from\nstdin"});
  REQUIRE(result.code == ExitCode::kOk);
  REQUIRE(server.requests().size() == 1);
  const v1::GenerateRequest request = server.requests()[0];
  CHECK(server.tenant() == "blue");
  CHECK(request.model() == "tiny");
  CHECK(request.priority() == -3);
  CHECK(request.cache_salt() == "salt");
  CHECK(request.skip_reading_prefix_cache());
  REQUIRE(request.chat().messages_size() == 2);
  CHECK(request.chat().messages(0).content() == "Be brief.");
  CHECK(request.chat().messages(1).role() == "user");
  CHECK(request.chat().messages(1).content() == "from\nstdin");
  const v1::SamplingParams& sampling = request.sampling();
  CHECK(sampling.max_tokens() == 9);
  CHECK((sampling.has_temperature() && sampling.temperature() == 0.0F));
  CHECK(sampling.top_k() == 3);
  CHECK(sampling.top_p() == 0.5F);
  CHECK(sampling.min_p() == 0.25F);
  CHECK(sampling.repetition_penalty() == 1.5F);
  CHECK(sampling.seed() == 42);
  REQUIRE(sampling.stop_strings_size() == 2);
  CHECK(sampling.stop_strings(0) == "[a,b]");
  CHECK(sampling.stop_strings(1) == "\n");
  CHECK(sampling.stop_token_ids(0) == 2);
  CHECK(sampling.ignore_eos());
  CHECK(sampling.logprobs() == 4);
}

TEST_CASE("what is not set is not sent, and an empty prompt is the server's to refuse") {
  FakeServer server;
  server.on_stream = StreamHello;
  REQUIRE(RunQuire({"generate", "", "--address", server.address()}).code == ExitCode::kOk);
  const v1::GenerateRequest request = server.requests().at(0);
  CHECK(request.input_case() == v1::GenerateRequest::kText);
  CHECK(request.text().empty());
  CHECK(request.sampling().ByteSizeLong() == 0);
  CHECK(server.tenant().empty());
}

TEST_CASE("generate --json is one object with the whole answer") {
  FakeServer server;
  server.on_stream = StreamHello;
  const RunResult result = RunQuire({"generate", "x", "--json", "--stats", "--address", server.address()});
  CHECK(result.code == ExitCode::kOk);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
  const Json json = Json::parse(result.out);
  CHECK(json["request_id"] == "request-1");
  CHECK(json["model"] == "tiny");
  CHECK(json["text"] == "Hello \x1b[2Jworld");
  CHECK(json["token_ids"] == Json({100, 101, 102}));
  CHECK(json["finish_reason"] == "stop_token");
  CHECK(json["usage"] == Json({{"prompt_tokens", 5}, {"completion_tokens", 3}, {"cached_prompt_tokens", 0}}));
  CHECK(json["timings"]["total_seconds"] == 0.5);
  CHECK_THAT(result.err, ContainsSubstring("5 prompt tokens (0 cached), 3 output tokens, time to first token "));
  CHECK_THAT(result.err, ContainsSubstring(" tokens/s, ended by stop_token"));
}

TEST_CASE("generate --logprobs shows each token's") {
  FakeServer server;
  server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter& writer) {
    WriteStarted(writer, 1);
    v1::GenerateStreamResponse event;
    event.mutable_chunk()->set_text("a");
    event.mutable_chunk()->add_token_ids(1);
    auto& position = *event.mutable_chunk()->add_logprobs();
    position.mutable_chosen()->set_text("a\n");
    position.mutable_chosen()->set_logprob(-0.5F);
    position.add_top()->set_text("b");
    writer.Write(event);
    WriteFinished(writer, v1::FINISH_REASON_LENGTH, 1, 1);
    return grpc::Status::OK;
  };
  const RunResult text = RunQuire({"generate", "x", "--logprobs", "1", "--address", server.address()});
  CHECK(text.err == "  \"a\\n\" -0.5000  \"b\" 0.0000\n");
  const RunResult json = RunQuire({"generate", "x", "--logprobs", "1", "--json", "--address", server.address()});
  CHECK(Json::parse(json.out)["logprobs"][0]["chosen"]["logprob"] == -0.5);
}

TEST_CASE("nobody at the address is one sentence that names it, and exit code 3") {
  std::string address;
  {
    const FakeServer server;
    address = server.address();
  }
  for (const char* const command : {"health", "info", "cache", "chat"}) {
    const RunResult result = RunQuire({command, "--address", address});
    CHECK(result.code == ExitCode::kCannotConnect);
    CHECK(result.out.empty());
    CHECK(result.err ==
          "quire: cannot connect to " + address + ": connection refused; is quire-server running there?\n");
  }
  const RunResult json = RunQuire({"generate", "x", "--json", "--address", address});
  CHECK(json.code == ExitCode::kCannotConnect);
  CHECK(json.err.empty());
  CHECK(Json::parse(json.out)["error"]["code"] == "UNAVAILABLE");
}

TEST_CASE("a refused request prints its status, and exit code 1") {
  FakeServer server;
  server.on_stream = FailWith(grpc::StatusCode::INVALID_ARGUMENT, "top_p: got 2, expected (0, 1]\x1b[2J");
  const RunResult result = RunQuire({"generate", "x", "--top-p", "2", "--address", server.address()});
  CHECK(result.code == ExitCode::kFailed);
  CHECK(result.err == "quire: INVALID_ARGUMENT: top_p: got 2, expected (0, 1]\\x1b[2J\n");
  const RunResult json = RunQuire({"generate", "x", "--json", "--address", server.address()});
  CHECK(json.code == ExitCode::kFailed);
  CHECK(Json::parse(json.out)["error"]["code"] == "INVALID_ARGUMENT");
}

TEST_CASE("UNAVAILABLE from a server that answers is a failed request") {
  FakeServer server;
  server.on_stream = FailWith(grpc::StatusCode::UNAVAILABLE, "draining");
  CHECK(RunQuire({"generate", "x", "--address", server.address()}).code == ExitCode::kFailed);
}

TEST_CASE("a stream without an end is an error") {
  FakeServer server;
  server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter& writer) {
    WriteChunk(writer, "half", 1);
    return grpc::Status::OK;
  };
  const RunResult result = RunQuire({"generate", "x", "--address", server.address()});
  CHECK(result.code == ExitCode::kFailed);
  CHECK(result.out == "half\n");
  CHECK_THAT(result.err, ContainsSubstring("INTERNAL"));
}

TEST_CASE("the flag --timeout becomes the call's deadline, and exit code 4") {
  FakeServer server;
  server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter& writer) {
    return StreamUntilCancelled(writer);
  };
  const RunResult result = RunQuire({"generate", "x", "--timeout", "0.2", "--address", server.address()});
  CHECK(result.code == ExitCode::kDeadline);
  CHECK_THAT(result.err, ContainsSubstring("DEADLINE_EXCEEDED"));
}

TEST_CASE("bad usage is told before anything is sent, and exit code 2") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"dance"},
                                             {"generate"},
                                             {"generate", "x", "--input", "f", "--output", "g"},
                                             {"generate", "--input", "f"},
                                             {"generate", "x", "--output", "g"},
                                             {"generate", "x", "--seed", "-1"},
                                             {"generate", "\xff"},
                                             {"generate", "--input", "f", "--output", "g", "--concurrency", "0"},
                                             {"health", "--address", "localhost"},
                                             {"health", "--address", ":1"},
                                             {"health", "--address", "localhost:65536"},
                                             {"health", "--timeout", "0"},
                                             {"health", "--timeout", "nan"},
                                             {"health", "--tenant", "a\nb"},
                                             {"detokenize"},
                                             {"detokenize", "x"}}) {
    const RunResult result = RunQuire(arguments);
    CAPTURE(arguments, result.err);
    CHECK(result.code == ExitCode::kUsage);
    CHECK_FALSE(result.err.empty());
  }
}

TEST_CASE("the flag --help lists the exit codes and --version the version") {
  const RunResult help = RunQuire({"--help"});
  CHECK(help.code == ExitCode::kOk);
  CHECK_THAT(help.out, ContainsSubstring("130  interrupted"));
  const RunResult version = RunQuire({"--version"});
  CHECK(version.code == ExitCode::kOk);
  CHECK(version.out.starts_with("quire "));
}

TEST_CASE("health succeeds exactly if the server is serving") {
  FakeServer server;
  const RunResult serving = RunQuire({"health", "--address", server.address()});
  CHECK(serving.code == ExitCode::kOk);
  CHECK(serving.out == "SERVING\n");
  server.health = grpc::health::v1::HealthCheckResponse::NOT_SERVING;
  const RunResult draining = RunQuire({"health", "--json", "--address", server.address()});
  CHECK(draining.code == ExitCode::kFailed);
  CHECK(draining.out == "{\"status\":\"NOT_SERVING\"}\n");
}

TEST_CASE("tokenize and detokenize are each other's inverse") {
  FakeServer server;
  const RunResult table = RunQuire({"tokenize", "a\tb", "--address", server.address()});
  CHECK(table.out == "  97  \"a\"\n  9   \"\\t\"\n  98  \"b\"\n3 tokens of at most 8,192\n");
  CHECK(RunQuire({"tokenize", "-", "--ids", "--address", server.address()}, {.input = "ab"}).out == "97 98\n");
  const RunResult json = RunQuire({"tokenize", "ab", "--json", "--address", server.address()});
  CHECK(Json::parse(json.out)["token_ids"] == Json({97, 98}));
  CHECK(RunQuire({"detokenize", "97", "98", "--address", server.address()}).out == "ab\n");
  const RunResult shown =
      RunQuire({"detokenize", "97", "27", "--address", server.address()}, {.input = "", .out_is_terminal = true});
  CHECK(shown.out == "a\\x1b\n");
}

TEST_CASE("info shows the model") {
  FakeServer server;
  server.model_info.set_name("tiny");
  server.model_info.set_num_parameters(134515008);
  server.model_info.add_end_of_generation_ids(2);
  const RunResult text = RunQuire({"info", "--address", server.address()});
  CHECK(text.code == ExitCode::kOk);
  CHECK_THAT(text.out, ContainsSubstring("tiny\n") && ContainsSubstring("134,515,008"));
  const RunResult json = RunQuire({"info", "--json", "--address", server.address()});
  CHECK(Json::parse(json.out)["models"][0]["num_parameters"] == 134515008);
}

TEST_CASE("cache shows the statistics once, or as often as the server sends them") {
  FakeServer server;
  server.cache_stats.set_blocks_total(7);
  server.cache_stats.add_requests()->set_request_id("r1");
  const RunResult once = RunQuire({"cache", "--json", "--address", server.address()});
  CHECK(Json::parse(once.out)["blocks_total"] == 7);
  CHECK(Json::parse(once.out)["requests"].empty());
  const RunResult requests = RunQuire({"cache", "--requests", "--address", server.address()});
  CHECK_THAT(requests.out, ContainsSubstring("r1"));
  const RunResult watched = RunQuire({"cache", "--watch", "--json", "--address", server.address()});
  CHECK(watched.code == ExitCode::kOk);
  CHECK(std::count(watched.out.begin(), watched.out.end(), '\n') == 2);
  CHECK(server.watch_interval_seconds == 1.0);
  const RunResult plain = RunQuire({"cache", "--watch", "0.5", "--address", server.address()});
  CHECK(server.watch_interval_seconds == 0.5);
  CHECK(plain.out.find('\x1b') == std::string::npos);
  CHECK_THAT(plain.out, ContainsSubstring("Prefix cache"));
}

TEST_CASE("cache --watch is live on a terminal") {
  FakeServer server;
  server.cache_stats.set_blocks_total(4);
  server.cache_stats.set_blocks_used(4);
  const RunResult live =
      RunQuire({"cache", "--watch", "--address", server.address()}, {.input = "", .out_is_terminal = true});
  CHECK(live.code == ExitCode::kOk);
  CHECK(live.out.starts_with("\x1b[2J\x1b[H"));
  CHECK_THAT(live.out, ContainsSubstring("██] used, of the pool\x1b[K\n"));
  CHECK(live.out.ends_with("\x1b[J"));
}

TEST_CASE("cache --config shows how the cache is set up") {
  FakeServer server;
  server.cache_config.set_block_size_tokens(32);
  server.cache_config.set_prefix_caching_enabled(true);
  const RunResult text = RunQuire({"cache", "--config", "--address", server.address()});
  CHECK_THAT(text.out, ContainsSubstring("32 tokens"));
  CHECK_THAT(text.out, ContainsSubstring("prefix caching  on"));
  const RunResult json = RunQuire({"cache", "--config", "--json", "--address", server.address()});
  CHECK(Json::parse(json.out)["block_size_tokens"] == 32);
  CHECK(RunQuire({"cache", "--config", "--watch", "--address", server.address()}).code == ExitCode::kUsage);
}

TEST_CASE("chat keeps the conversation, and takes a failed turn back") {
  FakeServer server;
  server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest& request, StreamWriter& writer) {
    const std::string turn = request.chat().messages().rbegin()->content();
    return turn == "bad" ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "bad turn")
                         : StreamPieces(writer, {"re:", turn});
  };
  const RunResult result =
      RunQuire({"chat", "--system", "S", "--address", server.address()}, {.input = "one\n\n  \nbad\ntwo"});
  CHECK(result.code == ExitCode::kFailed);
  CHECK(result.out == "re:one\nre:two\n");
  CHECK_THAT(result.err, ContainsSubstring("bad turn"));
  REQUIRE(server.requests().size() == 3);
  const v1::GenerateRequest last = server.requests()[2];
  std::string history;
  for (const auto& message : last.chat().messages()) {
    history += message.role() + "=" + message.content() + ";";
  }
  CHECK(history == "system=S;user=one;assistant=re:one;user=two;");
}

TEST_CASE("chat on a terminal prompts, and ends well at Ctrl-D") {
  FakeServer server;
  server.on_stream = StreamHello;
  const RunResult result = RunQuire({"chat", "--address", server.address()},
                                    {.input = "hi\n", .out_is_terminal = true, .input_is_terminal = true});
  CHECK(result.code == ExitCode::kOk);
  CHECK(result.err == "> > \n");
}

}  // namespace
}  // namespace quire::testing
