#pragma once

namespace quire {

// `quire-bench accuracy`: weight, compute and KV types against f32 over a text. The exit code; argv[0] is the command's
// name.
int RunAccuracyCommand(int argc, char** argv);

}  // namespace quire
