#include "server/config/server_config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/version.h"
#include "server/config/server_settings.h"
#include "server/file_text.h"
#include "server/security/api_keys.h"
#include "server/security/loopback.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

std::string FlagOf(const ServerSetting& setting) {
  std::string flag = StrCat("--", setting.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// A switch has a "no" form too, for what is on by default.
std::string FlagsOf(const ServerSetting& setting) {
  const std::string flag = FlagOf(setting);
  return setting.is_switch() ? StrCat(flag, ",!--no-", flag.substr(2)) : flag;
}

std::string HelpOf(const ServerSetting& setting) {
  const nlohmann::json value = setting.get(ServerConfig{});
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.empty() ? setting.help : StrCat(setting.help, " Default: ", text, ".");
}

// A flag's text as the JSON value that a file would hold: a number where it is one, else a string.
nlohmann::json ToJsonValue(const std::string& text) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_number() ? value : nlohmann::json(text);
}

// Names and paths are text even where they look like numbers.
absl::Status SetFromFlag(const ServerSetting& setting, const std::string& text, ServerConfig* config) {
  if (setting.is_switch()) return setting.set(text == "true", config);
  if (setting.value_name == "JSON") {
    nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    return setting.set(value.is_discarded() ? nlohmann::json(text) : value, config);
  }
  const bool is_text = setting.value_name == "PATH" || setting.value_name == "NAME";
  return setting.set(is_text ? nlohmann::json(text) : ToJsonValue(text), config);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::optional<std::string> text = FileText(path);
  if (!text) {
    return InvalidArgument("--config", StrCat("\"", path, "\""), "a file that can be read");
  }
  return *std::move(text);
}

bool IsOfThisMachine(const std::string& address) {
  const std::string host = HostOf(address);
  return host == "localhost" || IsLoopbackIp(host);
}

// Whoever reaches a server that asks for no credentials may use it, and see what others do.
absl::Status CheckExposure(const ServerConfig& config) {
  if (!config.api_keys.empty() || !config.tls.client_ca.empty() || config.allow_unauthenticated) {
    return absl::OkStatus();
  }
  for (const auto& [field, address] :
       {std::pair("grpc_listen", config.grpc_listen), {"http_listen", config.http_listen}}) {
    if (address.empty() || IsOfThisMachine(address)) continue;
    return InvalidArgument(field, StrCat("\"", address, "\""),
                           "an address of this machine alone (127.0.0.1, [::1]), or --api-keys, --tls-client-ca or "
                           "--allow-unauthenticated");
  }
  return absl::OkStatus();
}

// The command line as CLI11 sees it; the flags' texts are kept until the configuration file has been applied.
class Parser {
 public:
  Parser() {
    app_.description("Serves a language model on CPUs over gRPC.");
    app_.footer(
        "Flags win over the configuration file. Exit codes: 0 stopped by a signal; 2 a model, setting or "
        "address that can't be used; 1 anything else.");
    app_.set_version_flag("--version", StrCat("quire-server ", kVersion), "Print the version.");
    app_.add_option("--config", config_path_, "JSON file with settings; comments allowed, '_' for '-' in names.")
        ->type_name("PATH");
    app_.add_flag("--print-config", print_config_, "Print the effective settings as a configuration file.");
    auto* dry_run = app_.add_flag("--dry-run", dry_run_,
                                  "Print what a start would take and what would fit, without loading weights; a "
                                  "budget set by hand is answered for, even if this machine has less.");
    app_.add_flag("--json", as_json_, "With --dry-run: print a JSON object.")->needs(dry_run);
    for (const ServerSetting& setting : ServerSettings()) AddFlag(setting);
    inspect_ = app_.add_subcommand("inspect", "Print what a model file holds.");
    inspect_->add_option("path", inspect_path_, "The model file.")->type_name("PATH")->required();
    new_key_ = app_.add_subcommand("new-key", "Make an API key, and print it and its entry in the file of --api-keys.");
    new_key_->add_option("tenant", new_key_tenant_, "Whose key it is.")->type_name("NAME")->required();
    new_key_->add_flag("--admin", new_key_is_admin_, "May drain, clear the cache, and see all tenants' requests.");
  }

  absl::StatusOr<CommandLine> Parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return CommandLine{.action = CommandLine::Action::kPrint, .config = {}, .text = app_.help()};
    } catch (const CLI::CallForVersion& version) {
      return CommandLine{.action = CommandLine::Action::kPrint, .config = {}, .text = StrCat(version.what(), "\n")};
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(StrCat(error.what(), " (see --help)"));
    }
    if (inspect_->parsed()) {
      return CommandLine{.action = CommandLine::Action::kInspect, .config = {}, .text = inspect_path_};
    }
    if (new_key_->parsed()) {
      QUIRE_ASSIGN_OR_RETURN(const NewApiKey made, MakeApiKey(new_key_tenant_, new_key_is_admin_));
      return CommandLine{.action = CommandLine::Action::kPrint,
                         .config = {},
                         .text = StrCat("key:   ", made.key, "\nentry: ", made.entry, "\n")};
    }
    return Overlay();
  }

 private:
  void AddFlag(const ServerSetting& setting) {
    if (setting.is_switch()) {
      app_.add_flag(FlagsOf(setting), switches_[setting.name], HelpOf(setting));
    } else {
      app_.add_option(FlagOf(setting), texts_[setting.name], HelpOf(setting))->type_name(setting.value_name);
    }
  }

  absl::StatusOr<CommandLine> Overlay() {
    CommandLine result;
    if (!config_path_.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path_));
      QUIRE_RETURN_IF_ERROR(ApplyConfigText(text, config_path_, &result.config));
    }
    for (const ServerSetting& setting : ServerSettings()) {
      if (app_.count(FlagOf(setting)) == 0) continue;
      const std::string text =
          setting.is_switch() ? (switches_[setting.name] ? "true" : "false") : texts_[setting.name];
      QUIRE_RETURN_IF_ERROR(SetFromFlag(setting, text, &result.config));
    }
    QUIRE_RETURN_IF_ERROR(CheckTlsFiles(result.config.tls));
    if (print_config_) {
      result.action = CommandLine::Action::kPrint;
      result.text = result.config.ToJson();
    } else if (result.config.model.empty()) {
      return InvalidArgument("model", "nothing", "the path of a model file (--model PATH)");
    } else if (dry_run_) {
      result.action = CommandLine::Action::kDryRun;
      result.as_json = as_json_;
    } else {
      QUIRE_RETURN_IF_ERROR(CheckExposure(result.config));
    }
    return result;
  }

  CLI::App app_{"", "quire-server"};
  CLI::App* inspect_ = nullptr;
  CLI::App* new_key_ = nullptr;
  std::string config_path_;
  std::string inspect_path_;
  std::string new_key_tenant_;
  bool new_key_is_admin_ = false;
  bool print_config_ = false;
  bool dry_run_ = false;
  bool as_json_ = false;
  std::map<std::string, std::string> texts_;
  std::map<std::string, bool> switches_;
};

}  // namespace

std::string ServerConfig::model_name() const {
  return served_model_name.empty() ? std::filesystem::path(model).stem().string() : served_model_name;
}

std::string ServerConfig::ToJson() const {
  Json json;
  for (const ServerSetting& setting : ServerSettings()) json[setting.name] = setting.get(*this);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) { return Parser().Parse(argc, argv); }

absl::Status ApplyConfigText(const std::string& text, const std::string& path, ServerConfig* config) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& error) {  // also for numbers that are too large
    return absl::InvalidArgumentError(StrCat(path, ": expected JSON with comments: ", error.what()));
  }
  if (!json.is_object()) return absl::InvalidArgumentError(StrCat(path, ": expected a JSON object"));
  const std::span<const ServerSetting> settings = ServerSettings();
  for (const auto& [key, value] : json.items()) {
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&key = key](const ServerSetting& known) { return known.name == key; });
    if (setting == settings.end()) {
      return absl::InvalidArgumentError(
          StrCat(path, ": unknown key \"", key, "\"; --print-config shows the known ones"));
    }
    QUIRE_RETURN_IF_ERROR(setting->set(value, config));
  }
  return absl::OkStatus();
}

}  // namespace quire
