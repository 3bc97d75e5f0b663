#include "server/http/http_body.h"

#include <chrono>

#include "engine/base/status.h"
#include "server/messages/json_fields.h"

namespace quire {
namespace {

// Memory that is given back when it goes.
class Share {
 public:
  explicit Share(BodyMemory* memory) : memory_(memory) {}
  ~Share() { memory_->Give(num_bytes_); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  bool Grow(int64_t num_bytes) {
    const bool taken = memory_->TryTake(num_bytes);
    if (taken) num_bytes_ += num_bytes;
    return taken;
  }

 private:
  BodyMemory* const memory_;
  int64_t num_bytes_ = 0;
};

}  // namespace

bool BodyMemory::TryTake(int64_t num_bytes) {
  if (used_bytes_.fetch_add(num_bytes) + num_bytes <= max_bytes_) return true;
  used_bytes_ -= num_bytes;
  return false;
}

absl::StatusOr<nlohmann::json> ReadJsonBody(const httplib::Request& request, const httplib::ContentReader& reader,
                                            int64_t max_values, BodyMemory* memory) {
  if (request.is_multipart_form_data()) {
    return InvalidArgument("Content-Type", std::string_view("multipart/form-data"), "application/json");
  }
  Share share(memory);
  std::string body;
  bool fits = true;
  // What does not fit is read all the same, and dropped: the connection's next request begins behind it.
  const bool is_read = reader([&](const char* bytes, size_t size) {
    fits = fits && share.Grow(static_cast<int64_t>(size));
    if (fits) body.append(bytes, size);
    return true;
  });
  if (!is_read) return absl::CancelledError("the request's body did not come");
  if (!fits) {
    return Unavailable("the bodies of other HTTP requests take all the memory for them", std::chrono::seconds(1));
  }
  return ParseJsonObject(body, max_values);
}

}  // namespace quire
