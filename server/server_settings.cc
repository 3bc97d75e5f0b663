#include "server/server_settings.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "engine/base/status.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using Getter = std::function<Json(const ServerConfig&)>;
using Setter = std::function<absl::Status(const Json&, ServerConfig*)>;

constexpr std::string_view kAuto = "auto";

// Pointers to fields: a member of ServerConfig or of its EngineConfig.
template <typename T>
using Field = std::function<T&(ServerConfig&)>;

template <typename T>
const T& Read(const Field<T>& field, const ServerConfig& config) {
  return field(const_cast<ServerConfig&>(config));  // only read
}

ServerSetting Text(std::string name, std::string value_name, std::string help, Field<std::string> field,
                   std::function<absl::Status(const std::string&)> check = nullptr) {
  Setter set = [name, field, check](const Json& value, ServerConfig* config) {
    if (!value.is_string()) return InvalidArgument(name, value.dump(), "a string");
    if (check) QUIRE_RETURN_IF_ERROR(check(value.get<std::string>()));
    field(*config) = value.get<std::string>();
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), std::move(value_name), std::move(help), std::move(set), std::move(get)};
}

ServerSetting Choice(std::string name, std::vector<std::string> choices, std::string help, Field<std::string> field) {
  std::string all;
  for (const std::string& choice : choices) all += (all.empty() ? "" : "|") + choice;
  auto check = [name, choices, all](const std::string& value) {
    for (const std::string& choice : choices) {
      if (value == choice) return absl::OkStatus();
    }
    return InvalidArgument(name, StrCat("\"", value, "\""), all);
  };
  return Text(std::move(name), all, std::move(help), std::move(field), std::move(check));
}

absl::StatusOr<int64_t> IntegerIn(const std::string& name, const Json& value, int64_t min, int64_t max,
                                  std::string_view prefix) {
  const std::string accepted = StrCat(std::string(prefix), "an integer in [", min, ", ", max, "]");
  if (!value.is_number_integer()) return InvalidArgument(name, value.dump(), accepted);
  // JSON integers above int64's range are kept unsigned, and would come out negative.
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(max);
  if (too_large || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    return InvalidArgument(name, value.dump(), accepted);
  }
  return value.get<int64_t>();
}

ServerSetting Integer(std::string name, std::string help, int64_t min, int64_t max, Field<int64_t> field) {
  Setter set = [name, min, max, field](const Json& value, ServerConfig* config) {
    QUIRE_ASSIGN_OR_RETURN(field(*config), IntegerIn(name, value, min, max, ""));
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), "N", std::move(help), std::move(set), std::move(get)};
}

Getter GetOrAuto(Field<std::optional<int64_t>> field) {
  return [field](const ServerConfig& config) {
    const std::optional<int64_t>& value = Read(field, config);
    return value ? Json(*value) : Json(kAuto);
  };
}

ServerSetting IntegerOrAuto(std::string name, std::string help, int64_t min, int64_t max,
                            Field<std::optional<int64_t>> field) {
  Setter set = [name, min, max, field](const Json& value, ServerConfig* config) {
    std::optional<int64_t> number;
    if (value != kAuto) {
      QUIRE_ASSIGN_OR_RETURN(number, IntegerIn(name, value, min, max, "auto or "));
    }
    field(*config) = number;
    return absl::OkStatus();
  };
  Getter get = GetOrAuto(field);
  return {std::move(name), "auto|N", std::move(help), std::move(set), std::move(get)};
}

ServerSetting BytesOrAuto(std::string name, std::string help, Field<std::optional<int64_t>> field) {
  Setter set = [name, field](const Json& value, ServerConfig* config) {
    std::optional<int64_t> bytes;
    if (value != kAuto) {
      QUIRE_ASSIGN_OR_RETURN(bytes, ParseBytes(name, value.is_string() ? value.get<std::string>() : value.dump()));
    }
    field(*config) = bytes;
    return absl::OkStatus();
  };
  Getter get = GetOrAuto(field);
  return {std::move(name), "auto|BYTES", std::move(help), std::move(set), std::move(get)};
}

ServerSetting Seconds(std::string name, std::string help, double max, Field<double> field) {
  Setter set = [name, max, field](const Json& value, ServerConfig* config) {
    // Written so that NaN fails it.
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= max)) {
      return InvalidArgument(name, value.dump(), StrCat("seconds in [0, ", max, "]"));
    }
    field(*config) = value.get<double>();
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), "SECONDS", std::move(help), std::move(set), std::move(get)};
}

ServerSetting Switch(std::string name, std::string help, Field<bool> field) {
  Setter set = [name, field](const Json& value, ServerConfig* config) {
    if (!value.is_boolean()) return InvalidArgument(name, value.dump(), "true or false");
    field(*config) = value.get<bool>();
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), "", std::move(help), std::move(set), std::move(get)};
}

absl::Status CheckBlockSize(const Json& value) {
  for (const int64_t accepted : {16, 32, 64}) {
    if (value == accepted) return absl::OkStatus();
  }
  return InvalidArgument("block_size", value.dump(), "16, 32 or 64");
}

ServerSetting BlockSize() {
  Setter set = [](const Json& value, ServerConfig* config) {
    QUIRE_RETURN_IF_ERROR(CheckBlockSize(value));
    config->engine.block_size = value.get<int64_t>();
    return absl::OkStatus();
  };
  Getter get = [](const ServerConfig& config) { return Json(config.engine.block_size); };
  return {"block_size", "16|32|64", "Tokens of a KV cache block.", std::move(set), std::move(get)};
}

std::vector<ServerSetting> ServingSettings() {
  return {
      Text("model", "PATH", "The model file (GGUF). Required.",
           [](ServerConfig& c) -> std::string& { return c.model; }),
      Text("served_model_name", "NAME", "The model's name in the API; empty: the file's name without its extension.",
           [](ServerConfig& c) -> std::string& { return c.served_model_name; }),
      Text(
          "grpc_listen", "HOST:PORT", "Where to serve gRPC. Port 0 is a free one; the ready line shows it.",
          [](ServerConfig& c) -> std::string& { return c.grpc_listen; },
          [](const std::string& address) { return CheckListenAddress("grpc_listen", address); }),
      Integer("text_threads", "Threads of the text layer, in [2, 64]: one detokenizes, the others tokenize.", 2, 64,
              [](ServerConfig& c) -> int64_t& { return c.text_threads; }),
      Choice("log_level", {"debug", "info", "warning", "error", "off"}, "What is logged to standard error.",
             [](ServerConfig& c) -> std::string& { return c.log_level; }),
      Switch("log_prompts", "Log the text of prompts too.", [](ServerConfig& c) -> bool& { return c.log_prompts; }),
      Seconds("drain_seconds",
              "After SIGTERM or Ctrl-C, what running requests get to finish; in [0, 3600]. A second signal ends the "
              "server at once.",
              3600, [](ServerConfig& c) -> double& { return c.drain_seconds; }),
  };
}

std::vector<ServerSetting> EngineSettings() {
  return {
      IntegerOrAuto("max_model_len",
                    "Most tokens of a request, prompt and output together, in [256, 16777216] or the model's length "
                    "if less; auto: the largest that fits.",
                    1, 16777216, [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.max_model_len; }),
      IntegerOrAuto("max_num_batched_tokens",
                    "Most tokens computed in a step, in [16, 65536]; auto: up to 512, as many as take at most "
                    "target_step_ms while requests decode.",
                    16, 65536,
                    [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.max_num_batched_tokens; }),
      Integer("max_num_seqs", "Most requests running at once, in [1, 4096].", 1, 4096,
              [](ServerConfig& c) -> int64_t& { return c.engine.max_num_seqs; }),
      BlockSize(),
      Choice("weight_type", {"auto", "f32", "bf16"},
             "How weights are stored; auto: as the file has them, if it can be.",
             [](ServerConfig& c) -> std::string& { return c.engine.weight_type; }),
      Choice("compute_type", {"auto", "f32", "bf16"}, "What matmuls compute in; auto: the fastest, measured at load.",
             [](ServerConfig& c) -> std::string& { return c.engine.compute_type; }),
      Choice("kv_cache_dtype", {"auto", "f32", "bf16"}, "How the KV cache is stored; auto: bf16.",
             [](ServerConfig& c) -> std::string& { return c.engine.kv_cache_dtype; }),
      BytesOrAuto("memory_budget",
                  "The hard limit of the process, as bytes or \"2GiB\"; auto: the cgroup's limit, or what is needed.",
                  [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.memory_budget_bytes; }),
      BytesOrAuto("kv_cache_memory_bytes", "Size of the KV cache, as bytes or \"2GiB\"; auto: what the budget leaves.",
                  [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.kv_cache_memory_bytes; }),
      IntegerOrAuto("threads",
                    "Compute threads, in [1, 1024]; auto: the least of affinity, cgroup quota and physical cores.", 1,
                    1024, [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.num_threads; }),
  };
}

std::vector<ServerSetting> AllSettings() {
  std::vector<ServerSetting> settings = ServingSettings();
  for (ServerSetting& setting : EngineSettings()) settings.push_back(std::move(setting));
  return settings;
}

// What a unit multiplies by; 0 for no unit.
double UnitBytes(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  if (unit == "KiB") return 1024.0;
  if (unit == "MiB") return 1024.0 * 1024;
  if (unit == "GiB") return 1024.0 * 1024 * 1024;
  if (unit == "TiB") return 1024.0 * 1024 * 1024 * 1024;
  return 0;
}

}  // namespace

std::span<const ServerSetting> ServerSettings() {
  static const std::vector<ServerSetting> settings = AllSettings();
  return settings;
}

absl::StatusOr<int64_t> ParseBytes(std::string_view field, const std::string& text) {
  const size_t number_end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, number_end);
  const std::string unit = number_end == std::string::npos ? "" : text.substr(number_end);
  double value = 0;
  const bool is_number = absl::SimpleAtod(number, &value);
  const double bytes = value * UnitBytes(unit);
  if (!is_number || !(bytes >= 1 && bytes < 0x1p62)) {
    return InvalidArgument(field, StrCat("\"", text, "\""),
                           "auto, a positive number of bytes, or one with KiB, MiB, GiB or TiB");
  }
  return static_cast<int64_t>(bytes);
}

absl::Status CheckListenAddress(std::string_view field, const std::string& address) {
  const auto refuse = [&] {
    return InvalidArgument(field, StrCat("\"", address, "\""),
                           "HOST:PORT with the port in [0, 65535], and an IPv6 host in brackets");
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return refuse();
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != std::string::npos) return refuse();
  int port_number = -1;
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !absl::SimpleAtoi(port, &port_number) || port_number > 65535) return refuse();
  return absl::OkStatus();
}

}  // namespace quire
