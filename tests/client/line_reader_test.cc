#include "client/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <string>
#include <thread>

namespace quire {
namespace {

class Pipe {
 public:
  Pipe() { REQUIRE(pipe2(ends_.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    close(ends_[0]);
    CloseWriter();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  void Write(const std::string& text) {
    REQUIRE(write(ends_[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void CloseWriter() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

TEST_CASE("lines are read one by one, the last one without its end too") {
  Pipe pipe;
  CancelSignal cancel;
  LineReader reader(pipe.reader(), cancel);
  pipe.Write("one\n\ntwo\nlast");
  pipe.CloseWriter();
  std::string line;
  for (const char* const expected : {"one", "", "two", "last"}) {
    REQUIRE(reader.ReadLine(line) == ReadOutcome::kRead);
    CHECK(line == expected);
  }
  CHECK(reader.ReadLine(line) == ReadOutcome::kEnd);
}

TEST_CASE("a read that waits ends when cancelled, and goes on after Reset") {
  Pipe pipe;
  CancelSignal cancel;
  LineReader reader(pipe.reader(), cancel);
  pipe.Write("half a li");
  std::thread canceller([&cancel] { cancel.Cancel(); });
  std::string line;
  CHECK(reader.ReadLine(line) == ReadOutcome::kCancelled);
  canceller.join();
  cancel.Reset();
  reader.DropPartialLine();
  pipe.CloseWriter();
  std::string rest;
  CHECK(reader.ReadAll(rest) == ReadOutcome::kRead);
  CHECK((rest.empty() || rest == "half a li"));  // read before the cancel, or after it
}

TEST_CASE("a subscription acts at Cancel, at once if late, and never after its end") {
  CancelSignal cancel;
  int num_runs = 0;
  {
    const auto subscription = cancel.OnCancel([&num_runs] { ++num_runs; });
    CHECK(num_runs == 0);
    cancel.Cancel();
    CHECK(num_runs == 1);
  }
  cancel.Cancel();
  CHECK(num_runs == 1);
  const auto late = cancel.OnCancel([&num_runs] { ++num_runs; });
  CHECK(num_runs == 2);
  CHECK(cancel.WaitFor(std::chrono::hours(1)));
  cancel.Reset();
  CHECK_FALSE(cancel.IsCancelled());
  CHECK_FALSE(cancel.WaitFor(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace quire
