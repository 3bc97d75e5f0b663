#include "server/security/tls_loader.h"

#include <string>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "server/file_text.h"

namespace quire {
namespace {

// Empty for a file that can't be read, too: as PEM it is then refused.
std::string ReadFile(const std::string& path) { return FileText(path).value_or(""); }

}  // namespace

absl::StatusOr<std::unique_ptr<TlsFileCopies>> TlsFileCopies::Create() {
  auto copies = std::make_unique<TlsFileCopies>();
  QUIRE_ASSIGN_OR_RETURN(copies->certificate_, MemoryFile::Create());
  QUIRE_ASSIGN_OR_RETURN(copies->key_, MemoryFile::Create());
  QUIRE_ASSIGN_OR_RETURN(copies->client_ca_, MemoryFile::Create());
  return copies;
}

absl::Status TlsFileCopies::Write(const TlsFiles& contents) const {
  QUIRE_RETURN_IF_ERROR(certificate_->Write(contents.certificate));
  QUIRE_RETURN_IF_ERROR(key_->Write(contents.key));
  return client_ca_->Write(contents.client_ca);
}

TlsFiles TlsFileCopies::paths(bool with_client_ca) const {
  return {
      .certificate = certificate_->path(), .key = key_->path(), .client_ca = with_client_ca ? client_ca_->path() : ""};
}

absl::StatusOr<std::unique_ptr<TlsLoader>> TlsLoader::Create(const TlsFiles& files) {
  std::unique_ptr<TlsLoader> loader(new TlsLoader(files));
  QUIRE_ASSIGN_OR_RETURN(loader->read_, TlsFileCopies::Create());
  QUIRE_ASSIGN_OR_RETURN(loader->good_, TlsFileCopies::Create());
  return loader;
}

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsLoader::Load() const {
  const TlsFiles contents = {.certificate = ReadFile(files_.certificate),
                             .key = ReadFile(files_.key),
                             .client_ca = ReadFile(files_.client_ca)};
  QUIRE_RETURN_IF_ERROR(read_->Write(contents));
  QUIRE_ASSIGN_OR_RETURN(auto context, TlsContext::Create(read_->paths(has_client_ca()), files_));
  if (context->has_expired())
    log::Warning("{}: the certificate has expired: clients will refuse it", files_.certificate);
  QUIRE_RETURN_IF_ERROR(good_->Write(contents));
  return context;
}

}  // namespace quire
