#include "server/messages/field_names.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr FieldName kNames[] = {{"chat.messages", "messages"}, {"chat", "messages"}, {"sampling.stop_strings", "stop"}};

TEST_CASE("an error gets the protocol's name of its field") {
  const auto renamed = [](const char* field) {
    const absl::Status status = WithFieldNames(InvalidArgument(field, 1, "2"), kNames);
    CHECK(std::string(status.message()) == *FieldOf(status) + ": got 1, expected 2");
    return *FieldOf(status);
  };
  CHECK(renamed("chat.messages[3].role") == "messages[3].role");
  CHECK(renamed("chat") == "messages");
  CHECK(renamed("sampling.stop_strings[0]") == "stop[0]");
  CHECK(renamed("sampling.top_p") == "top_p");
  CHECK(renamed("priority") == "priority");
  // Names that only begin with the same letters.
  CHECK(renamed("chat_template") == "chat_template");
  CHECK(renamed("chats") == "chats");
}

TEST_CASE("errors that name no field stay as they are") {
  CHECK(WithFieldNames(absl::OkStatus(), kNames).ok());
  const absl::Status overloaded = Overloaded("chat: too much of it", std::chrono::milliseconds(5));
  CHECK(WithFieldNames(overloaded, kNames) == overloaded);
}

}  // namespace
}  // namespace quire
