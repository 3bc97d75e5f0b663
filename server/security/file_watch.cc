#include "server/security/file_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace quire {
namespace {

constexpr std::chrono::seconds kInterval(1);

}  // namespace

FileWatch::FileWatch(std::function<void()> look)
    : look_(std::move(look)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void FileWatch::Run(const std::stop_token& stop) const {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, kInterval, [&stop] { return stop.stop_requested(); })) look_();
}

}  // namespace quire
