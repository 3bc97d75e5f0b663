#pragma once

#include <string>

namespace quire {

// What decides which kernels run here and how fast: the processor's name as it gives it, the instructions that vector
// code was chosen for, and oneDNN's instruction set (its dnnl_cpu_isa_t). One line.
std::string DescribeProcessor();

}  // namespace quire
