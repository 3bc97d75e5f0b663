#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace quire::testing {

// Relays one TCP connection to a server, until Cut() closes both of its ends as a machine that vanishes would.
class TcpRelay {
 public:
  // `target` is 127.0.0.1:PORT.
  explicit TcpRelay(const std::string& target);
  ~TcpRelay();

  const std::string& address() const { return address_; }
  void Cut();
  // All that the server has sent so far.
  std::string from_server() const;

 private:
  void Run();

  int target_port_ = 0;
  int listener_ = -1;
  std::atomic<bool> cut_ = false;
  std::string address_;
  mutable std::mutex mutex_;
  std::string from_server_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace quire::testing
