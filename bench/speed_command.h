#pragma once

namespace quire {

// Which measurements a command makes.
struct SpeedPhases {
  bool prefill = false;
  bool decode = false;
  bool mixed = false;
};

// `quire-bench prefill`, `decode`, `mixed`, and `speed` for the first two: the speed of a model. The exit code; argv[0]
// is the command's name.
int RunSpeedCommand(const SpeedPhases& phases, int argc, char** argv);

}  // namespace quire
