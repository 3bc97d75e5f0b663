#include "tests/client/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

extern char** environ;

namespace quire::testing {
namespace {

std::array<int, 2> MakePipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("cannot make a pipe");
  }
  return ends;
}

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> piece;
  ssize_t num_bytes = 0;
  while ((num_bytes = read(fd, piece.data(), piece.size())) > 0) {
    text.append(piece.data(), static_cast<size_t>(num_bytes));
  }
  return text;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  const auto input = MakePipe();
  const auto output = MakePipe();
  const auto error = MakePipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const int failure = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  close(error[1]);
  input_ = input[1];
  output_ = output[0];
  error_ = error[0];
  if (failure != 0) {
    pid_ = -1;
    throw std::runtime_error("cannot run " + command[0]);
  }
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  CloseInput();
  close(output_);
  close(error_);
}

void ChildProcess::Write(const std::string& text) {
  if (write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("cannot write to the child");
  }
}

void ChildProcess::CloseInput() {
  if (input_ >= 0) {
    close(input_);
    input_ = -1;
  }
}

std::string ChildProcess::ReadUntil(const std::string& text) {
  std::string seen;
  char byte = 0;
  while (seen.find(text) == std::string::npos && read(output_, &byte, 1) == 1) {
    seen += byte;
  }
  return seen;
}

std::string ChildProcess::ReadToEnd() { return ReadAll(output_); }

std::string ChildProcess::ReadErrorToEnd() { return ReadAll(error_); }

void ChildProcess::Signal(int signal) { kill(pid_, signal); }

int ChildProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace quire::testing
