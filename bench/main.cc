// quire-bench: the engine measured and simulated, without a network.

#include <string_view>

#include "bench/accuracy_command.h"
#include "bench/model_flags.h"
#include "bench/probe_command.h"
#include "bench/simulate_command.h"
#include "bench/speed_command.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool has_name = !command.empty() && command[0] != '-';
  // Flags without a command's name are those of `speed`.
  const int num_arguments = has_name ? argc - 1 : argc;
  char** const arguments = has_name ? argv + 1 : argv;
  if (command == "accuracy") return quire::RunAccuracyCommand(num_arguments, arguments);
  if (command == "probe") return quire::RunProbeCommand(num_arguments, arguments);
  if (command == "simulate") return quire::RunSimulateCommand(num_arguments, arguments);
  quire::SpeedPhases phases;
  if (command == "prefill" || command == "decode" || command == "mixed") {
    phases.prefill = command == "prefill";
    phases.decode = command == "decode";
    phases.mixed = command == "mixed";
  } else if (command == "speed" || !has_name) {
    phases.prefill = phases.decode = true;
  } else {
    return quire::ReportUnknownCommand(command);
  }
  return quire::RunSpeedCommand(phases, num_arguments, arguments);
}
