#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace quire::testing {

// A program with pipes for its standard input and output; its standard error goes to a pipe of its own. Killed
// at the end of its life if it still runs.
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void Write(const std::string& text);
  void CloseInput();

  // Reads standard output until it holds `text` behind what was returned before, or ends. Returns what it read.
  std::string ReadUntil(const std::string& text);
  std::string ReadToEnd();
  std::string ReadErrorToEnd();

  void Signal(int signal);

  // The exit code; minus the signal's number if one killed it.
  int Wait();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
};

}  // namespace quire::testing
