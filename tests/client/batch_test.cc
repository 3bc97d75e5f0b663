// `quire generate --input --output` against a fake server.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "client/batch_output.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/fake_server.h"
#include "tests/client/run_quire.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// The records of a file by id; fails on a line that is no JSON, and on an id that comes twice.
std::map<std::string, nlohmann::json> ReadRecords(const std::string& path) {
  std::map<std::string, nlohmann::json> records;
  std::istringstream lines(ReadFile(path));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    REQUIRE(records.emplace(record["id"].dump(), record).second);
  }
  return records;
}

grpc::Status Echo(const v1::GenerateRequest& request, v1::GenerateResponse& response) {
  FillAnswer("re:" + request.text(), response);
  return grpc::Status::OK;
}

class Batch {
 public:
  RunResult Run(const FakeServer& server, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"generate", "--input",   input(),         "--output",
                                          output(),   "--address", server.address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunQuire(arguments);
  }
  std::string input() const { return dir_.File("in.jsonl"); }
  std::string output() const { return dir_.File("out.jsonl"); }

 private:
  TempDir dir_;
};

TEST_CASE("each line is answered, and the second run asks nothing") {
  FakeServer server;
  server.on_generate = Echo;
  const Batch batch;
  WriteFile(batch.input(), "{\"id\": \"a\", \"prompt\": \"A\"}\n\n{\"id\": 2, \"prompt\": \"B\"}\n{\"prompt\": \"C\"}");
  const RunResult first = batch.Run(server, {"--json"});
  CHECK(first.code == ExitCode::kOk);
  CHECK(first.out == "{\"total\":3,\"answered\":3,\"skipped\":0,\"failed\":0,\"left\":0}\n");
  auto records = ReadRecords(batch.output());
  CHECK(records.size() == 3);
  CHECK(records["\"a\""]["text"] == "re:A");
  CHECK(records["2"]["finish_reason"] == "length");
  CHECK(records["\"line-4\""]["usage"]["prompt_tokens"] == 5);
  const std::string before = ReadFile(batch.output());
  const RunResult second = batch.Run(server, {"--json"});
  CHECK(second.out == "{\"total\":3,\"answered\":0,\"skipped\":3,\"failed\":0,\"left\":0}\n");
  CHECK(server.requests().size() == 3);
  CHECK(ReadFile(batch.output()) == before);
}

TEST_CASE("a torn last line is taken out and asked again") {
  FakeServer server;
  server.on_generate = Echo;
  const Batch batch;
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"A\"}\n{\"id\": 2, \"prompt\": \"B\"}\n");
  WriteFile(batch.output(), "{\"id\":1,\"text\":\"kept\"}\n{\"id\":2,\"text\":\"to");
  chmod(batch.output().c_str(), 0640);
  CHECK(batch.Run(server).code == ExitCode::kOk);
  auto records = ReadRecords(batch.output());
  CHECK(records.size() == 2);
  CHECK(records["1"]["text"] == "kept");
  CHECK(records["2"]["text"] == "re:B");
  CHECK(server.requests().size() == 1);
  struct stat info;
  REQUIRE(stat(batch.output().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
}

TEST_CASE("a whole last line that lacks only its end is kept") {
  FakeServer server;
  server.on_generate = Echo;
  const Batch batch;
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"A\"}\n{\"id\": 2, \"prompt\": \"B\"}\n");
  WriteFile(batch.output(), "{\"id\":1,\"text\":\"kept\"}");
  CHECK(batch.Run(server).code == ExitCode::kOk);
  auto records = ReadRecords(batch.output());
  CHECK(records["1"]["text"] == "kept");
  CHECK(records["2"]["text"] == "re:B");
}

TEST_CASE("an error is recorded, and tried again by the next run") {
  FakeServer server;
  bool is_mended = false;
  server.on_generate = [&](const v1::GenerateRequest& request, v1::GenerateResponse& response) {
    return request.text() == "bad" && !is_mended ? grpc::Status(grpc::StatusCode::INTERNAL, "step failed")
                                                 : Echo(request, response);
  };
  const Batch batch;
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"bad\"}\n{\"id\": 2, \"prompt\": \"B\"}\nnonsense\n");
  const RunResult first = batch.Run(server);
  CHECK(first.code == ExitCode::kFailed);
  CHECK_THAT(first.err, ContainsSubstring("1 answered, 0 answered before, 2 failed, 0 left"));
  auto records = ReadRecords(batch.output());
  CHECK(records["1"] == nlohmann::json::parse(R"({"id":1,"error":{"code":"INTERNAL","message":"step failed"}})"));
  CHECK(records["\"line-3\""]["error"]["code"] == "INVALID_ARGUMENT");
  is_mended = true;
  CHECK(batch.Run(server).code == ExitCode::kFailed);  // line 3 is still nonsense
  records = ReadRecords(batch.output());
  CHECK(records.size() == 3);
  CHECK(records["1"]["text"] == "re:bad");
}

TEST_CASE("no more requests are in flight than --concurrency says, and no fewer") {
  FakeServer server;
  std::mutex mutex;
  std::condition_variable changed;
  int num_in_flight = 0;
  int num_arrived = 0;
  int max_in_flight = 0;
  server.on_generate = [&](const v1::GenerateRequest& request, v1::GenerateResponse& response) {
    std::unique_lock lock(mutex);
    max_in_flight = std::max(max_in_flight, ++num_in_flight);
    // Calls wait for one another in threes; without that many at once the bound ends the wait.
    const int group = num_arrived++ / 3;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return num_arrived >= 3 * (group + 1); });
    --num_in_flight;
    return Echo(request, response);
  };
  const Batch batch;
  std::string input;
  for (int i = 0; i < 12; ++i) {
    input += "{\"id\": " + std::to_string(i) + ", \"prompt\": \"x\"}\n";
  }
  WriteFile(batch.input(), input);
  CHECK(batch.Run(server, {"--concurrency", "3"}).code == ExitCode::kOk);
  CHECK(max_in_flight == 3);
  CHECK(ReadRecords(batch.output()).size() == 12);
}

TEST_CASE("a full queue is tried again after the wait that it asks for") {
  FakeServer server;
  int num_refused = 0;
  server.on_generate = [&](const v1::GenerateRequest& request, v1::GenerateResponse& response) {
    if (num_refused == 2) {
      return Echo(request, response);
    }
    ++num_refused;
    google::rpc::RetryInfo info;
    info.mutable_retry_delay()->set_nanos(1'000'000);
    google::rpc::Status details;
    details.add_details()->PackFrom(info);
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full", details.SerializeAsString());
  };
  const Batch batch;
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"A\"}\n");
  CHECK(batch.Run(server).code == ExitCode::kOk);
  CHECK(server.requests().size() == 3);
  CHECK(ReadRecords(batch.output())["1"]["text"] == "re:A");
}

TEST_CASE("a server that stays away ends the batch after its retries") {
  FakeServer server;
  server.on_generate = [](const v1::GenerateRequest&, v1::GenerateResponse&) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
  };
  const Batch batch;
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"A\"}\n{\"id\": 2, \"prompt\": \"B\"}\n");
  const RunResult result = batch.Run(server, {"--concurrency", "1", "--retries", "0"});
  CHECK(result.code == ExitCode::kCannotConnect);
  CHECK_THAT(result.err, ContainsSubstring("1 failed, 1 left; the same command goes on"));
  CHECK(server.requests().size() == 1);
}

TEST_CASE("files that cannot be used are refused before anything is sent") {
  FakeServer server;
  const Batch batch;
  CHECK_THAT(batch.Run(server).err, ContainsSubstring("in.jsonl is not a file"));
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"A\"}\n{\"prompt\": \"B\"}\n{\"id\": 1, \"prompt\": \"C\"}\n");
  const RunResult twice = batch.Run(server);
  CHECK(twice.code == ExitCode::kUsage);
  CHECK_THAT(twice.err, ContainsSubstring("has the id 1 in line 1 and in line 3"));
  WriteFile(batch.input(), "{\"id\": 1, \"prompt\": \"A\"}\n");
  WriteFile(batch.output(), "dear diary\n");
  const RunResult foreign = batch.Run(server);
  CHECK(foreign.code == ExitCode::kUsage);
  CHECK_THAT(foreign.err, ContainsSubstring("holds something else than answers in line 1"));
  CHECK(ReadFile(batch.output()) == "dear diary\n");
  CHECK(server.requests().empty());
}

TEST_CASE("an output belongs to one process at a time") {
  const TempDir dir;
  std::unique_ptr<BatchOutput> first;
  REQUIRE(BatchOutput::Open(dir.File("out.jsonl"), first).ok());
  std::unique_ptr<BatchOutput> second;
  CHECK_THAT(BatchOutput::Open(dir.File("out.jsonl"), second).error_message(),
             ContainsSubstring("is being written by another process"));
  first.reset();
  CHECK(BatchOutput::Open(dir.File("out.jsonl"), second).ok());
}

}  // namespace
}  // namespace quire::testing
