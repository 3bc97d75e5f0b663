// Chat templates. A template, and after a byte 0 what it is rendered with as JSON.
#include <array>
#include <string>

#include "engine/base/check.h"
#include "engine/text/chat_template.h"
#include "engine/text/utf8.h"
#include "tests/fuzz/fuzz_target.h"

namespace quire::testing {
namespace {

constexpr int64_t kNow = 1700000000;
constexpr std::string_view kStages[] = {"parsed", "rendered"};
constexpr std::string_view kWords[] = {"{{",
                                       "}}",
                                       "{%",
                                       "%}",
                                       "{%-",
                                       "-%}",
                                       "{#",
                                       "#}",
                                       "{% for x in messages %}",
                                       "{% endfor %}",
                                       "{% if x %}",
                                       "{% endif %}",
                                       "{% set x = x ~ x %}",
                                       "{% set x = [x] %}",
                                       "{% macro m(x) %}{{ m(x) }}{% endmacro %}",
                                       "namespace(x=1)",
                                       "range(100)",
                                       "loop.index0",
                                       "| tojson(indent=2)",
                                       "| trim",
                                       "| length",
                                       "| upper",
                                       "| selectattr('role')",
                                       "| join(',')",
                                       "| reverse",
                                       "| sort",
                                       "| replace('a', 'b')",
                                       ".split(' ')",
                                       ".strip()",
                                       ".items()",
                                       ".startswith('a')",
                                       "[::-1]",
                                       "[1:]",
                                       "[-1]",
                                       "[0]",
                                       "is defined",
                                       "is mapping",
                                       "not ",
                                       " and ",
                                       " in ",
                                       " ~ ",
                                       " * ",
                                       " // ",
                                       " ** ",
                                       " % ",
                                       "raise_exception('x')",
                                       "strftime_now('%d %b %Y')",
                                       "%",
                                       "\\u0000",
                                       "\"role\":",
                                       "\"content\":",
                                       "{% raw %}",
                                       "{% endraw %}",
                                       "{% include 'chat_template' %}",
                                       "{% break %}",
                                       "{% set ns = namespace(x=[1]) %}",
                                       "{% set ns.x = [ns.x] %}",
                                       "{% set ns.x = ns.x ~ ns.x %}",
                                       "{% set ns.x = ns %}",
                                       "{% for i in range(9999) %}",
                                       "{% elif x %}",
                                       "{% with a = [a, a] %}",
                                       "{% endwith %}",
                                       " == ns.x",
                                       " * 9999",
                                       "| unique",
                                       "| sum(start=[])",
                                       "| format(x)",
                                       ".format(x)",
                                       ".join(x)",
                                       ".count(x)",
                                       "loop.changed(loop)",
                                       "+1+1+1+1+1+1+1+1"};

class ChatTemplates final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    const size_t end = input.find('\0');
    const auto chat_template = ChatTemplate::Create(std::string(input.substr(0, end)), "<s>", "</s>");
    if (!chat_template.ok()) return 0;
    const auto rendered = Render(**chat_template, input, end);
    if (rendered.ok()) QUIRE_CHECK(Utf8ValidPrefix(*rendered) == rendered->size());
    return rendered.ok() ? 2 : 1;
  }

 private:
  static absl::StatusOr<std::string> Render(const ChatTemplate& chat_template, std::string_view input, size_t end) {
    if (end != input.npos) return chat_template.RenderJson(std::string(input.substr(end + 1)), kNow);
    const std::array<ChatMessage, 2> messages = {{{"system", "be brief"}, {"user", "What is \"2 + 2\"?\n"}}};
    return chat_template.Render(messages, /*add_generation_prompt=*/true);
  }
};

}  // namespace

FuzzTargetKind ChatTemplateTarget() {
  return {"chat_template", kStages, kWords, [] { return std::make_unique<ChatTemplates>(); }};
}

}  // namespace quire::testing
