#include "client/command_line.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cache_command.h"
#include "client/chat_command.h"
#include "client/detokenize_command.h"
#include "client/generate_command.h"
#include "client/health_command.h"
#include "client/info_command.h"
#include "client/load_command.h"
#include "client/tokenize_command.h"

namespace quire {
namespace {

constexpr char kFooter[] =
    "Every command takes --address, --timeout, --tenant, --api-key, --tls and --json too (quire --help).\n"
    "\n"
    "Exit codes:\n"
    "  0    ok\n"
    "  1    the request failed (the status stands on standard error)\n"
    "  2    flags, arguments or files that cannot be used\n"
    "  3    nobody answers at the address\n"
    "  4    --timeout passed\n"
    "  130  interrupted";

// Flags that every command has, before or behind its name.
struct CommonFlags {
  CommonFlags() { client.address = "127.0.0.1:50051"; }

  ClientOptions client;
  bool json = false;
};

// Empty, or what is wrong with an address: CLI11's convention.
std::string CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  const bool is_port = is_number && std::stoi(port) >= 1 && std::stoi(port) <= 65535;
  return colon != 0 && is_port ? "" : "got " + address + ", expected HOST:PORT with a port in [1, 65535]";
}

std::string CheckTimeout(const std::string& text) {
  double seconds = 0;
  const bool is_number = CLI::detail::lexical_cast(text, seconds);
  return is_number && seconds >= 0.001 && seconds <= 1e9 ? "" : "got " + text + ", expected seconds in [0.001, 1e9]";
}

// HTTP/2 metadata is printable ASCII.
std::string CheckMetadata(const std::string& text) {
  for (const char letter : text) {
    if (letter < 0x20 || letter > 0x7E) {
      return "expected printable ASCII";
    }
  }
  return "";
}

// Each of the files turns TLS on.
void AddTlsFlags(CLI::App& app, ClientOptions& options) {
  const auto add_file = [&](const char* name, std::string& path, const char* description) {
    return app.add_option(name, path, description)
        ->type_name("PATH")
        ->check(CLI::ExistingFile)
        ->each([&options](const std::string&) { options.use_tls = true; });
  };
  app.add_flag("--tls", options.use_tls, "Connect over TLS");
  add_file("--tls-ca", options.tls_ca_path, "Authorities (PEM) that are trusted; default: the system's");
  auto* certificate = add_file("--tls-certificate", options.tls_certificate_path, "The client's own certificate (PEM)");
  auto* key = add_file("--tls-key", options.tls_key_path, "The certificate's private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
}

void AddCommonFlags(CLI::App& app, CommonFlags& flags) {
  app.set_version_flag("--version", "quire " QUIRE_VERSION, "Print the version and end");
  app.add_option("--address", flags.client.address, "The server")
      ->type_name("HOST:PORT")
      ->envname("QUIRE_ADDRESS")
      ->capture_default_str()
      ->check(CheckAddress);
  app.add_option("--timeout", flags.client.timeout_seconds, "Deadline of each request; default: none")
      ->type_name("SECONDS")
      ->check(CheckTimeout);
  app.add_option("--tenant", flags.client.tenant, "Tenant that the requests belong to (x-tenant-id)")
      ->type_name("NAME")
      ->check(CheckMetadata);
  app.add_option("--api-key", flags.client.api_key, "Key of a server that asks for one")
      ->type_name("KEY")
      ->envname("QUIRE_API_KEY")
      ->check(CheckMetadata);
  AddTlsFlags(app, flags.client);
  app.add_flag("--json", flags.json, "Results and errors as JSON, one object a line, on standard output");
}

template <typename AnyCommand>
void AddCommand(CLI::App& app, const char* name, const char* description,
                std::vector<std::unique_ptr<Command>>& commands) {
  CLI::App* const subcommand = app.add_subcommand(name, description)->fallthrough();
  commands.push_back(std::make_unique<AnyCommand>(*subcommand));
}

}  // namespace

ExitCode RunCommandLine(int argc, const char* const* argv, const Console& console, CancelSignal& cancel) {
  CLI::App app("Client of quire-server.", "quire");
  app.require_subcommand(1)->footer(kFooter);
  CommonFlags flags;
  AddCommonFlags(app, flags);
  std::vector<std::unique_ptr<Command>> commands;
  AddCommand<GenerateCommand>(app, "generate", "Continue a text, or answer a file of requests", commands);
  AddCommand<ChatCommand>(app, "chat", "Talk with the model", commands);
  AddCommand<CacheCommand>(app, "cache", "Show the KV cache and the memory budget", commands);
  AddCommand<InfoCommand>(app, "info", "Show what the server serves, and how", commands);
  AddCommand<TokenizeCommand>(app, "tokenize", "Show the tokens of a text", commands);
  AddCommand<DetokenizeCommand>(app, "detokenize", "Show the text of tokens", commands);
  AddCommand<LoadCommand>(app, "load", "Send many requests and measure what they see", commands);
  AddCommand<HealthCommand>(app, "health", "Succeed if the server is serving", commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, console.out, console.err) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  GenerationClient client(flags.client);
  CommandContext context{console, client, cancel, flags.json};
  for (const auto& command : commands) {
    if (command->IsChosen()) {
      return command->Run(context);
    }
  }
  return ExitCode::kUsage;
}

}  // namespace quire
