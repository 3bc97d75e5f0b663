#include "engine/text/chat_template.h"

#include <fstream>
#include <set>

#include "catch2/catch_test_macros.hpp"
#include "catch2/generators/catch_generators.hpp"
#include "nlohmann/json.hpp"
#include "tests/support/test_data.h"

namespace quire {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kJanuary15 = 1768435200;  // 2026-01-15 00:00:00 UTC

absl::StatusOr<std::string> RenderText(const std::string& source, const std::string& context_json = "{}") {
  auto created = ChatTemplate::Create(source, "<s>", "</s>");
  if (!created.ok()) return created.status();
  return (*created)->RenderJson(context_json, kJanuary15);
}

bool Mentions(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST_CASE("templates of eight families render as Jinja2 does") {
  int num_cases = 0;
  for (const char* family :
       {"llama-3.1", "llama-3.2", "mistral-nemo", "phi-3.5", "qwen2.5", "qwen3", "smollm2", "smollm3"}) {
    std::ifstream file(testing::RepositoryData("chat_templates/" + std::string(family) + ".json"));
    const OrderedJson fixture = OrderedJson::parse(file);
    const auto created = ChatTemplate::Create(fixture["template"], fixture["bos_token"], fixture["eos_token"]);
    REQUIRE(created.ok());
    for (const OrderedJson& each : fixture["cases"]) {
      INFO(family << " " << each["name"] << " " << num_cases);
      const auto text = (*created)->RenderJson(each["input"].dump(), kJanuary15);
      if (each.contains("error")) {
        REQUIRE(text.status().code() == absl::StatusCode::kInvalidArgument);
        CHECK(Mentions(text.status(), each["error"].get<std::string>()));
      } else {
        INFO(text.status().ToString());
        REQUIRE(text.ok());
        CHECK(*text == each["expected"].get<std::string>());
      }
      ++num_cases;
    }
  }
  CHECK(num_cases == 96);
}

TEST_CASE("messages reach the template with the model's own marks") {
  const auto created = ChatTemplate::Create(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m['content'] }}{{ eos_token }}\n"
      "{% endfor %}\n"
      "{% if add_generation_prompt %}[assistant]{% endif %}",
      "<s>", "</s>");
  REQUIRE(created.ok());
  const ChatMessage messages[] = {{"system", "{{ 1 }} \xF0\x9F\x98\x80"}, {"user", "\"a\"\n"}};
  const auto text = (*created)->Render(messages, true);
  REQUIRE(text.ok());
  CHECK(*text == "<s>[system]{{ 1 }} \xF0\x9F\x98\x80</s>\n[user]\"a\"\n</s>\n[assistant]");
  CHECK(*(*created)->Render({}, false) == "<s>");
}

TEST_CASE("broken UTF-8 in a message is refused by its place") {
  const auto created = ChatTemplate::Create("{{ messages }}", "", "");
  REQUIRE(created.ok());
  const ChatMessage messages[] = {{"user", "ok"}, {"user", "a\xFF"}};
  const auto text = (*created)->Render(messages, false);
  REQUIRE(text.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(Mentions(text.status(), "messages[1].content"));
}

TEST_CASE("values are printed and dumped as Python does") {
  const std::string context = R"({"v": {"b": [1, 2.0, true, null, "x'y", "<é>"], "a": {}}, "t": true, "f": 1e20})";
  CHECK(*RenderText("{{ v | tojson }}", context) == R"({"b": [1, 2.0, true, null, "x'y", "<é>"], "a": {}})");
  CHECK(*RenderText("{{ v | tojson(indent=2) }}", R"({"v": {"a": [1, {}], "b": []}})") ==
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
  CHECK(*RenderText("{{ v | tojson(sort_keys=true, ensure_ascii=true) }}", R"({"v": {"b": "é😀", "a": 1}})") ==
        R"({"a": 1, "b": "\u00e9\ud83d\ude00"})");
  CHECK(*RenderText("{{ v | tojson(separators=(',', ':')) }}", R"({"v": {"b": [1, 2]}})") == R"({"b":[1,2]})");
  CHECK(*RenderText("{{ v }}", context) == R"({'b': [1, 2.0, True, None, "x'y", '<é>'], 'a': {}})");
  CHECK(*RenderText("{{ t }} {{ f }} {{ none }} {{ missing }}{{ 1e-7 }}", context) == "True 1e+20 None 1e-07");
}

TEST_CASE("functions and statements that templates rely on") {
  CHECK(*RenderText("{{ strftime_now('%d %b %Y') }}") == "15 Jan 2026");
  CHECK(*RenderText("{% macro today() %}{{ strftime_now('%A') }}{% endmacro %}{{ today() }}") == "Thursday");
  CHECK(*RenderText("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                    "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "02");
  CHECK(*RenderText("{{ ' a '.strip() }}{{ 'x,y'.split(',')[1] }}{{ {'k': 1}.get('k') }}") == "ay1");
  CHECK(*RenderText("  {% if true %}\nx\n  {% endif %}\ny") == "x\ny");
}

TEST_CASE("a template that raises says what") {
  const auto text = RenderText("{{ raise_exception('roles must alternate') }}");
  REQUIRE(text.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(Mentions(text.status(), "roles must alternate"));
}

TEST_CASE("a template that can't be parsed is refused with its line") {
  const auto created = ChatTemplate::Create("a\n{% if %}", "", "");
  REQUIRE(created.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(Mentions(created.status(), "chat_template:2"));
  CHECK_FALSE(ChatTemplate::Create(std::string(2 << 20, 'a'), "", "").ok());
  CHECK_FALSE(ChatTemplate::Create("\xFF", "", "").ok());
}

TEST_CASE("templates without end are ended") {
  const std::string loops =
      "{% for a in range(10000) %}{% for b in range(10000) %}{% set x = a * b %}{% endfor %}{% endfor %}";
  CHECK(Mentions(RenderText(loops).status(), "fuel"));
  CHECK(Mentions(RenderText("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}").status(), "recursion"));
  const std::string deep = std::string(100000, '(') + "1" + std::string(100000, ')');
  CHECK(RenderText("{{ " + deep + " }}").status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("texts without end are ended") {
  const auto loop = [](const std::string& begin, const std::string& body, const std::string& after) {
    return "{% set ns = namespace(x=" + begin + ") %}{% for i in range(60) %}{% set ns.x = " + body +
           " %}{% endfor %}" + after;
  };
  CHECK(Mentions(RenderText(loop("[1]", "[ns.x, ns.x]", "{{ ns.x }}")).status(), "bytes"));
  CHECK(Mentions(RenderText(loop("{}", "{'a': ns.x, 'b': ns.x}", "{{ ns.x | tojson }}")).status(), "bytes"));
  const std::string much(10'000, 'x');
  CHECK(Mentions(RenderText("{% for i in range(100000) %}" + much + "{% endfor %}").status(), "bytes"));
}

// What `body` does to `ns.x` again and again; then `after`.
std::string Repeated(const std::string& begin, const std::string& body, const std::string& after = "") {
  return "{% set ns = namespace(x=" + begin + ") %}{% for i in range(99999) %}{% for j in range(99999) %}" + body +
         "{% endfor %}{% endfor %}" + after;
}

std::string Joined(const std::string& part, const std::string& separator, int count) {
  std::string text = part;
  for (int i = 1; i < count; ++i) text += separator + part;
  return text;
}

TEST_CASE("values that a hostile template makes have a bound") {
  CHECK(Mentions(RenderText(Repeated("'a'", "{% set ns.x = ns.x ~ ns.x %}")).status(), "fuel"));
  CHECK(Mentions(RenderText(Repeated("[]", "{% set ns.x = [ns.x] %}")).status(), "256 levels"));
  CHECK(Mentions(RenderText(Repeated("{}", "{% set ns.x = {'a': ns.x} %}")).status(), "256 levels"));
  CHECK(Mentions(RenderText(Joined("{% set x = [x] %}", "", 40'000)).status(), "256 levels"));
  // These show nothing of the lists that they hold.
  CHECK(Mentions(RenderText(Repeated("[]", "{% set ns.x = ([ns.x] * 1)[5:] %}")).status(), "fuel"));
  CHECK(Mentions(RenderText(Repeated("[1]", "{% set ns.x = ns.x | reverse %}")).status(), "fuel"));
  CHECK(*RenderText("{% set ns = namespace(x=1) %}{% for i in range(200) %}{% set ns.x = [ns.x] %}{% endfor %}"
                    "{{ [[1], [0]] | sort }}") == "[[0], [1]]");
}

TEST_CASE("namespaces and loops can't come to hold themselves") {
  CHECK(Mentions(RenderText("{% set a = namespace() %}{% set b = namespace() %}{% set a.x = b %}{% set b.x = a %}"
                            "{{ a == b }}")
                     .status(),
                 "expected data"));
  CHECK(Mentions(RenderText("{% set a = namespace() %}{% set a.x = [a] %}{{ a ~ '' }}").status(), "expected data"));
  CHECK(Mentions(RenderText("{% for i in [1] %}{{ loop.changed(loop) }}{% endfor %}").status(), "expected data"));
}

TEST_CASE("a mistake that the library panics at ends the rendering alone") {
  CHECK_FALSE(RenderText("{% for i in [1] %}{{ loop.cycle() }}{% endfor %}").ok());
  CHECK(*RenderText("{% for i in [1] %}{{ loop.cycle('a') }}{% endfor %}") == "a");
}

TEST_CASE("values that hold the same one twice don't hold the process") {
  const std::string doubled =
      "{% macro m(x, n) %}{% if n %}{{ m([x, x], n - 1) }}{% else %}{{ x ~ '' }}{% endif %}"
      "{% endmacro %}{{ m(1, 30) }}";
  CHECK(RenderText(doubled).status().code() == absl::StatusCode::kInvalidArgument);
  const std::string nested = "{{ [[[1] * 99999999] * 99999999] == [[[1] * 99999999] * 99999998] }}";
  CHECK(RenderText(nested).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("texts that are put into a text many times are refused") {
  const std::string text = "{% set s = 'a' * 1000000 %}";
  for (const char* use :
       {"{{ ('{0}' * 100000).format(s) }}", "{{ '{:>9999999999}'.format(1) }}",
        "{{ ('%(a)s' * 100000) | format(a=s) }}", "{{ '%999999999d' | format(1) }}", "{{ s.replace('', s) }}",
        "{{ s | replace('a', s) }}", "{{ s.join(range(100000)) }}", "{{ range(100000) | join(s) }}",
        "{{ ([s] * 10000) ~ '' }}", "{{ s * 99999999 }}", "{{ ('a\n' * 100000) | indent(999999999) }}"}) {
    INFO(use);
    CHECK(RenderText(text + use).status().code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(*RenderText("{{ '{:>4} {}'.format(1, 'b') }}{{ '%s-%(a)s' | replace('%s', 'x') | format(a=2) }}") ==
        "   1 bx-2");
}

TEST_CASE("long tags and chains of elif are refused, up to their bounds they work") {
  CHECK(*RenderText("{{ " + Joined("1", "+", 499) + " }}") == "499");
  CHECK(Mentions(RenderText("{{ " + Joined("1", "+", 501) + " }}").status(), "expected at most"));
  CHECK(Mentions(RenderText("{{ " + Joined("x", "~", 100'000) + " }}").status(), "expected at most"));
  CHECK(*RenderText("{% if x %}" + Joined("{% elif x %}", "", 200) + "{% else %}y{% endif %}") == "y");
  CHECK(Mentions(RenderText("{% if x %}" + Joined("{% elif x %}", "", 50'000) + "{% endif %}").status(), "'elif'"));
}

TEST_CASE("long conversations and texts fit") {
  OrderedJson context = {
      {"messages", OrderedJson::array()}, {"add_generation_prompt", true}, {"bos_token", "<s>"}, {"eos_token", "</s>"}};
  for (int i = 0; i < 16'000; ++i) {
    context["messages"].push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", "hello there"}});
  }
  context["messages"][0]["content"] = std::string(5'000'000, 'x');
  for (const char* family : {"llama-3.1", "mistral-nemo", "qwen3"}) {
    INFO(family);
    std::ifstream file(testing::RepositoryData("chat_templates/" + std::string(family) + ".json"));
    const auto text = RenderText(OrderedJson::parse(file)["template"], context.dump());
    REQUIRE(text.ok());
    CHECK(text->size() > 5'000'000);
  }
}

TEST_CASE("contexts that are no JSON object are refused") {
  for (const std::string context : {"", "[1]", "{", "3", "{\"a\": \"\xFF\"}"}) {
    CHECK(RenderText("x", context).status().code() == absl::StatusCode::kInvalidArgument);
  }
  const std::string deep = "{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}";
  CHECK(RenderText("x", deep).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire
