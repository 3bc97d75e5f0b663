// The real binary with real pipes and signals, against a fake server.
#include <signal.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <string>

#include "tests/client/child_process.h"
#include "tests/client/fake_server.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {
namespace {

using Catch::Matchers::ContainsSubstring;

// A bound for a wait that only a fault makes long.
constexpr std::chrono::seconds kPatience(30);

TEST_CASE("text is shown as it comes") {
  FakeServer server;
  std::promise<void> was_seen;
  auto seen = was_seen.get_future();
  server.on_stream = [&](grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter& writer) {
    WriteStarted(writer, 1);
    WriteChunk(writer, "first", 1);
    if (seen.wait_for(kPatience) != std::future_status::ready) {
      return grpc::Status(grpc::StatusCode::INTERNAL, "the first chunk was not shown");
    }
    WriteChunk(writer, " second", 2);
    WriteFinished(writer, v1::FINISH_REASON_LENGTH, 1, 2);
    return grpc::Status::OK;
  };
  ChildProcess quire({QUIRE_BINARY, "generate", "x", "--address", server.address()});
  CHECK(quire.ReadUntil("first") == "first");
  was_seen.set_value();
  CHECK(quire.ReadToEnd() == " second\n");
  CHECK(quire.Wait() == 0);
}

TEST_CASE("Ctrl-C cancels the call, and exit code 130") {
  FakeServer server;
  std::promise<bool> end;
  server.on_stream = [&](grpc::ServerContext& context, const v1::GenerateRequest&, StreamWriter& writer) {
    WriteChunk(writer, "begun", 1);
    const grpc::Status status = StreamUntilCancelled(writer);
    end.set_value(context.IsCancelled());
    return status;
  };
  ChildProcess quire({QUIRE_BINARY, "generate", "x", "--address", server.address()});
  REQUIRE(quire.ReadUntil("begun") == "begun");
  quire.Signal(SIGINT);
  CHECK(quire.Wait() == 130);
  CHECK(quire.ReadErrorToEnd() == "quire: interrupted\n");
  auto was_cancelled = end.get_future();
  REQUIRE(was_cancelled.wait_for(kPatience) == std::future_status::ready);
  CHECK(was_cancelled.get());
}

TEST_CASE("Ctrl-C in a chat stops the answer and keeps the conversation") {
  FakeServer server;
  server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest& request, StreamWriter& writer) {
    if (request.chat().messages_size() == 1) {
      WriteChunk(writer, "endless", 1);
      return StreamUntilCancelled(writer);
    }
    return StreamPieces(writer, {"fine"});
  };
  ChildProcess quire({QUIRE_BINARY, "chat", "--address", server.address()});
  quire.Write("one\n");
  REQUIRE(quire.ReadUntil("endless") == "endless");
  quire.Signal(SIGINT);
  CHECK(quire.ReadUntil("\n") == "\n");
  quire.Write("two\n");
  CHECK(quire.ReadUntil("fine\n") == "fine\n");
  quire.CloseInput();
  CHECK(quire.Wait() == 0);
  const v1::GenerateRequest last = server.requests().at(1);
  REQUIRE(last.chat().messages_size() == 3);
  CHECK(last.chat().messages(1).role() == "assistant");
  CHECK(last.chat().messages(1).content() == "endless");
  CHECK(last.chat().messages(2).content() == "two");
}

TEST_CASE("Ctrl-C ends a batch, and the next run asks what was in flight") {
  FakeServer server;
  std::promise<void> is_stuck;
  std::promise<void> was_interrupted;
  auto interrupted = was_interrupted.get_future().share();
  bool is_first_run = true;
  server.on_generate = [&](const v1::GenerateRequest& request, v1::GenerateResponse& response) {
    if (request.text() == "B" && is_first_run) {
      is_stuck.set_value();
      interrupted.wait_for(kPatience);
    }
    FillAnswer("re:" + request.text(), response);
    return grpc::Status::OK;
  };
  const TempDir dir;
  std::ofstream(dir.File("in")) << "{\"id\":1,\"prompt\":\"A\"}\n{\"id\":2,\"prompt\":\"B\"}\n"
                                << "{\"id\":3,\"prompt\":\"C\"}\n";
  const std::vector<std::string> command = {QUIRE_BINARY, "generate",       "--input",       dir.File("in"),
                                            "--output",   dir.File("out"),  "--concurrency", "1",
                                            "--address",  server.address(), "--json"};
  ChildProcess first(command);
  REQUIRE(is_stuck.get_future().wait_for(kPatience) == std::future_status::ready);
  first.Signal(SIGINT);
  CHECK(first.Wait() == 130);
  CHECK_THAT(first.ReadToEnd(), ContainsSubstring("\"answered\":1,\"skipped\":0,\"failed\":0,\"left\":2"));
  is_first_run = false;
  was_interrupted.set_value();
  ChildProcess second(command);
  CHECK_THAT(second.ReadToEnd(), ContainsSubstring("\"answered\":2,\"skipped\":1,\"failed\":0,\"left\":0"));
  CHECK(second.Wait() == 0);
}

}  // namespace
}  // namespace quire::testing
