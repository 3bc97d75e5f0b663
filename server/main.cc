#include <time.h>

#include <cstdio>
#include <format>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/checkpoint/describe_checkpoint.h"
#include "engine/runtime/process_memory.h"
#include "server/config/server_config.h"
#include "server/descriptor_limit.h"
#include "server/dry_run.h"
#include "server/life/process_signals.h"
#include "server/life/service_manager.h"
#include "server/life/warm_up.h"
#include "server/lock_checks.h"
#include "server/security/security.h"
#include "server/server.h"

namespace quire {
namespace {

constexpr int kExitCantUse = 2;  // the model, a setting or the address
constexpr int kExitOther = 1;

struct Arguments {
  int argc = 0;
  const char* const* argv = nullptr;
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "quire-server: %s\n", std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kInternal ? kExitOther : kExitCantUse;
}

int Print(const std::string& text) { return std::fputs(text.c_str(), stdout) < 0 ? kExitOther : 0; }

int Inspect(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = OpenCheckpoint(path);
  if (!checkpoint.ok()) return Fail(checkpoint.status());
  return Print(DescribeCheckpoint(**checkpoint));
}

int PrintDryRun(const ServerConfig& config, bool as_json) {
  const absl::StatusOr<std::string> text = DryRun(config, as_json);
  return text.ok() ? Print(*text) : Fail(text.status());
}

// As systemd asks for with RELOADING=1, to tell reloads apart.
int64_t MonotonicMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000} + now.tv_nsec / 1000;
}

// What SIGHUP asks for. The configuration's other settings are those of the start.
void Reload(const Arguments& arguments, Server& server) {
  NotifyServiceManager(std::format("RELOADING=1\nMONOTONIC_USEC={}", MonotonicMicroseconds()));
  const absl::StatusOr<CommandLine> command = ParseCommandLine(arguments.argc, arguments.argv);
  const absl::Status status = command.ok() ? log::SetLevel(command->config.log_level) : command.status();
  if (!status.ok()) log::Error("the log level stays as it is: {}", std::string(status.message()));
  server.Reload();
  log::Info("SIGHUP: keys, tenants, certificates and the log level were read again");
  NotifyServiceManager("READY=1");
}

// Serves a model that has answered once. What takes no time to be found wrong is found first.
absl::StatusOr<std::unique_ptr<Server>> Start(const ServerConfig& config, const Clock& clock,
                                              const ProcessSignals& signals, std::string* description) {
  const TerminationAtOnce until_serving(signals);
  const bool tenants_are_set = !config.engine.tenants.empty();
  QUIRE_ASSIGN_OR_RETURN(Security security, LoadSecurity(config.api_keys, tenants_are_set, config.tls, &clock));
  QUIRE_ASSIGN_OR_RETURN(ServedModel model, LoadServedModel(config, &clock));
  *description = model.Describe();
  QUIRE_RETURN_IF_ERROR(WarmUp(model.engine.get()));
  return Server::Start(config, std::move(security), std::move(model), &clock);
}

int Serve(const ServerConfig& config, const Arguments& arguments) {
  ProcessSignals signals;
  const SteadyClock clock;
  if (const absl::Status status = log::Configure(config.log_level, config.log_format); !status.ok())
    return Fail(status);
  std::string description;
  absl::StatusOr<std::unique_ptr<Server>> server = Start(config, clock, signals, &description);
  if (!server.ok()) return Fail(server.status());

  const std::string& address = (*server)->address();
  const std::string http_address = (*server)->http_address();
  if (!http_address.empty()) description += "  HTTP address  " + http_address + "\n";
  std::fprintf(stderr, "%s  address       %s\nquire-server: ready on %s\n", description.c_str(), address.c_str(),
               address.c_str());
  NotifyServiceManager("READY=1");
  int signal = signals.Wait();
  for (; signal == SIGHUP; signal = signals.Wait()) Reload(arguments, **server);
  NotifyServiceManager("STOPPING=1");
  log::Info("signal {}: no new requests; those that run get {} s", signal, config.drain_seconds);
  signals.RestoreDefault();
  (*server)->Shutdown(ToDuration(config.drain_seconds));
  log::Info("stopped");
  log::Flush();
  return 0;
}

int Main(int argc, const char* const* argv) {
  BoundAllocator();
  TurnOffLockChecks();
  RaiseDescriptorLimit();
  const absl::StatusOr<CommandLine> command = ParseCommandLine(argc, argv);
  if (!command.ok()) return Fail(command.status());
  switch (command->action) {
    case CommandLine::Action::kPrint: return Print(command->text);
    case CommandLine::Action::kInspect: return Inspect(command->text);
    case CommandLine::Action::kDryRun: return PrintDryRun(command->config, command->as_json);
    case CommandLine::Action::kServe: break;
  }
  return Serve(command->config, {argc, argv});
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Main(argc, argv); }
