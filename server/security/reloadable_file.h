#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/status.h"

namespace quire {

// What tells one content of a file from another without reading it; empty if the file is not there.
struct FileStamp {
  int64_t device = 0;
  int64_t inode = 0;
  int64_t size = -1;
  int64_t changed_nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;

  static FileStamp Of(const std::string& path) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) return {};
    return {.device = static_cast<int64_t>(info.st_dev),
            .inode = static_cast<int64_t>(info.st_ino),
            .size = info.st_size,
            .changed_nanoseconds = info.st_ctim.tv_sec * int64_t{1'000'000'000} + info.st_ctim.tv_nsec};
  }
};

// A value that is made of files, and made anew when one of them changes. Files that can't be used are told in the log,
// and the value stays what it was. Thread-safe.
template <typename Value>
class ReloadableFile {
 public:
  using Load = std::function<absl::StatusOr<std::shared_ptr<const Value>>()>;

  // The value as `load` makes it of `paths`, or its error. `clock` must outlive the object.
  static absl::StatusOr<std::unique_ptr<ReloadableFile>> Create(std::vector<std::string> paths, Load load,
                                                                const Clock* clock) {
    std::unique_ptr<ReloadableFile> file(new ReloadableFile(std::move(paths), std::move(load), clock));
    QUIRE_RETURN_IF_ERROR(file->LoadLocked());
    return file;
  }

  // Calls `on_value` with the value, now, and later with each new one before anybody gets it: under the object's lock,
  // so that each call is the newest. `on_value` may not call the object.
  void Watch(std::function<void(const Value&)> on_value) {
    const std::lock_guard lock(mutex_);
    on_value_ = std::move(on_value);
    on_value_(*value_);
  }

  // Looks at the files, but not more often than once a second.
  std::shared_ptr<const Value> Get() {
    const std::lock_guard lock(mutex_);
    if (clock_->Now() - looked_ >= kLookInterval) LookLocked();
    return value_;
  }

  // Reads the files now, whether they seem to have changed or not.
  void Reload() {
    const std::lock_guard lock(mutex_);
    ReloadLocked();
  }

 private:
  static constexpr Duration kLookInterval = std::chrono::seconds(1);

  ReloadableFile(std::vector<std::string> paths, Load load, const Clock* clock)
      : paths_(std::move(paths)), load_(std::move(load)), clock_(clock) {}

  std::vector<FileStamp> Stamps() const {
    std::vector<FileStamp> stamps;
    for (const std::string& path : paths_) stamps.push_back(FileStamp::Of(path));
    return stamps;
  }

  // The stamps are taken first: a change during the load is seen at the next look.
  absl::Status LoadLocked() {
    looked_ = clock_->Now();
    stamps_ = Stamps();
    QUIRE_ASSIGN_OR_RETURN(value_, load_());
    return absl::OkStatus();
  }

  void LookLocked() {
    looked_ = clock_->Now();
    if (Stamps() != stamps_) ReloadLocked();
  }

  void ReloadLocked() {
    const absl::Status loaded = LoadLocked();
    if (loaded.ok()) {
      if (on_value_) on_value_(*value_);
      log::Info("{}: read again, and in force now", paths_.front());
    } else {
      log::Error("what was loaded before stays in force: {}", std::string(loaded.message()));
    }
  }

  const std::vector<std::string> paths_;
  const Load load_;
  const Clock* const clock_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Value> value_;
  std::function<void(const Value&)> on_value_;  // may be empty
  std::vector<FileStamp> stamps_;               // of the files that were loaded last
  TimePoint looked_;
};

}  // namespace quire
