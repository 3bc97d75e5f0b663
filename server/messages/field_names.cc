#include "server/messages/field_names.h"

#include <cctype>
#include <optional>
#include <string>

#include "engine/base/status.h"

namespace quire {
namespace {

bool IsPartOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string NameOf(const std::string& field, std::span<const FieldName> names) {
  for (const auto& [ours, theirs] : names) {
    const bool begins = field.starts_with(ours) && (field.size() == ours.size() || !IsPartOfName(field[ours.size()]));
    if (begins) return StrCat(theirs, field.substr(ours.size()));
  }
  const std::string_view sampling = "sampling.";
  return field.starts_with(sampling) ? field.substr(sampling.size()) : field;
}

}  // namespace

absl::Status WithFieldNames(const absl::Status& status, std::span<const FieldName> names) {
  const std::optional<std::string> field = FieldOf(status);
  const std::string message(status.message());
  if (!field || !message.starts_with(*field + ": ")) return status;
  return NeverFits(NameOf(*field, names), message.substr(field->size() + 2));
}

}  // namespace quire
