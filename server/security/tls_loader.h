#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/memory_file.h"
#include "server/security/tls.h"

namespace quire {

// TLS files' contents as files in memory.
class TlsFileCopies {
 public:
  static absl::StatusOr<std::unique_ptr<TlsFileCopies>> Create();

  absl::Status Write(const TlsFiles& contents) const;
  // Their paths; of client_ca only if there is one.
  TlsFiles paths(bool with_client_ca) const;

 private:
  std::unique_ptr<MemoryFile> certificate_;
  std::unique_ptr<MemoryFile> key_;
  std::unique_ptr<MemoryFile> client_ca_;
};

// Loads a server's TLS files, as often as they change. They are read once each time, into copies, so that what is found
// good is what is served. Descriptors are taken at the start: a reload needs none but that of the file it reads.
class TlsLoader {
 public:
  static absl::StatusOr<std::unique_ptr<TlsLoader>> Create(const TlsFiles& files);

  // INVALID_ARGUMENT names the file that can't be used.
  absl::StatusOr<std::shared_ptr<const TlsContext>> Load() const;

  // Paths of the copies that were last found good. gRPC watches these and not the files themselves, since it would take
  // whatever it finds there.
  TlsFiles good_files() const { return good_->paths(has_client_ca()); }
  bool has_client_ca() const { return !files_.client_ca.empty(); }

 private:
  explicit TlsLoader(TlsFiles files) : files_(std::move(files)) {}

  const TlsFiles files_;
  std::unique_ptr<TlsFileCopies> read_;
  std::unique_ptr<TlsFileCopies> good_;
};

}  // namespace quire
