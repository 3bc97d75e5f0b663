// quire-bench: the engine measured and simulated, without a network.

#include <string_view>

#include "bench/accuracy_command.h"
#include "bench/probe_command.h"
#include "bench/simulate_command.h"
#include "bench/speed_command.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "accuracy") return quire::RunAccuracyCommand(argc - 1, argv + 1);
  if (command == "probe") return quire::RunProbeCommand(argc - 1, argv + 1);
  if (command == "simulate") return quire::RunSimulateCommand(argc - 1, argv + 1);
  if (command == "speed") return quire::RunSpeedCommand(argc - 1, argv + 1);
  // Flags without a command's name are those of `speed`.
  return quire::RunSpeedCommand(argc, argv);
}
