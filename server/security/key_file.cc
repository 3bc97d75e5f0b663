#include "server/security/key_file.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "engine/base/status.h"
#include "server/file_text.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using Event = Json::parse_event_t;

constexpr char kKeys[] = "keys";
constexpr char kTenants[] = "tenants";
constexpr uintmax_t kMaxFileBytes = 4 << 20;  // some 30,000 keys

// Looks for members that stand twice in an object: the parser keeps the last one and says nothing.
class TwiceFinder {
 public:
  // As the parser's callback, with the depth of what is parsed.
  void Look(size_t depth, Event event, const Json& parsed) {
    if (event == Event::object_start && depth < names_.size()) names_[depth].clear();
    if (event != Event::key || depth > names_.size()) return;
    const auto& name = parsed.get_ref<const std::string&>();
    if (names_[depth - 1].insert(name).second) return;
    // Any other name may be a key, put there by mistake.
    const bool may_tell = depth == 1 && (name == kKeys || name == kTenants);
    found_ = may_tell ? StrCat("\"", name, "\" twice") : "a member twice in one object";
  }

  absl::Status Check(const std::string& path) const {
    return found_.empty() ? absl::OkStatus() : InvalidArgument(path, found_, "each member once");
  }

 private:
  std::array<std::set<std::string>, 3> names_;  // by depth: of the file, of tenants, of a tenant or a key's entry
  std::string found_;
};

}  // namespace

absl::StatusOr<KeyFile> KeyFile::Parse(const std::string& text, const std::string& path) {
  TwiceFinder twice;
  const auto look = [&twice](int depth, Event event, const Json& parsed) {
    twice.Look(static_cast<size_t>(depth), event, parsed);
    return true;
  };
  const Json json = Json::parse(text, look, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  const bool has_tenants = json.is_object() && json.contains(kTenants);
  const bool has_keys = json.is_object() && json.contains(kKeys) && json[kKeys].is_array();
  if (!has_keys || json.size() != (has_tenants ? 2 : 1)) {
    return InvalidArgument(path, "something else", R"(a JSON object {"keys": [...]}, with "tenants" or without)");
  }
  QUIRE_RETURN_IF_ERROR(twice.Check(path));
  KeyFile file;
  QUIRE_ASSIGN_OR_RETURN(file.keys, ApiKeys::Parse(StrCat(path, ": ", kKeys), json[kKeys]));
  if (!has_tenants) return file;
  QUIRE_ASSIGN_OR_RETURN(file.tenants,
                         ParseTenantTable(StrCat(path, ": ", kTenants), json[kTenants], WrongValues::kHidden));
  return file;
}

absl::StatusOr<KeyFile> KeyFile::Load(const std::string& path) {
  std::error_code error;
  const uintmax_t num_bytes = std::filesystem::file_size(path, error);
  if (!error && num_bytes > kMaxFileBytes) {
    return InvalidArgument("api_keys", StrCat("\"", path, "\" of ", num_bytes, " bytes"),
                           StrCat("a file of at most ", kMaxFileBytes, " bytes"));
  }
  const std::optional<std::string> text = error ? std::nullopt : FileText(path);
  if (!text) {
    return InvalidArgument("api_keys", StrCat("\"", path, "\""), "a file that can be read and is not empty");
  }
  return Parse(*text, path);
}

absl::StatusOr<std::unique_ptr<ReloadableFile<KeyFile>>> OpenKeyFile(const std::string& path, bool tenants_are_set,
                                                                     const Clock* clock) {
  auto load = [path, tenants_are_set]() -> absl::StatusOr<std::shared_ptr<const KeyFile>> {
    QUIRE_ASSIGN_OR_RETURN(KeyFile file, KeyFile::Load(path));
    if (tenants_are_set && file.tenants) {
      return InvalidArgument("tenants", StrCat("a setting and a member of \"", path, "\""), "one of the two");
    }
    return std::make_shared<const KeyFile>(std::move(file));
  };
  return ReloadableFile<KeyFile>::Create({path}, std::move(load), clock);
}

}  // namespace quire
