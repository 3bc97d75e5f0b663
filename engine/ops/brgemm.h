#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/tensor/dtype.h"

namespace quire {

// C [rows, n] (+)= (A_0 + A_1 + ..) [rows, k] x B [k, n] by oneDNN's matmul micro-kernels, which run on the calling
// thread alone and so inside a parallel region. Each of the `terms` A_i is row-major with row stride lda, and A_i + 1
// lies term_stride elements behind A_i. B is row-major with row stride ldb for f32; for bf16 it is packed in pairs
// along k: [k / 2, ldb, 2], with k even. C is f32 with row stride ldc. Source: oneDNN's ukernel API
// (dnnl::ukernel::brgemm).
//
// In f32, of one term, an element of C is one chain of fused multiply-adds in order of k, whatever `rows` is, so a
// row's result does not depend on its neighbours.
struct BrgemmShape {
  int64_t n = 0;
  int64_t k = 0;
  int64_t lda = 0;
  int64_t ldb = 0;  // 0: n
  int64_t ldc = 0;
  DType input_type = DType::kF32;  // of A and B
  bool accumulate = false;         // C += instead of C =
  int64_t terms = 1;               // 1 or 2
  int64_t term_stride = 0;
};

class Brgemm {
 public:
  // Generates the kernels. Nothing if this processor or build of oneDNN has none for the shape.
  static std::optional<Brgemm> Create(const BrgemmShape& shape);

  Brgemm(Brgemm&&) noexcept;
  Brgemm& operator=(Brgemm&&) noexcept;
  ~Brgemm();

  // Scratch that each executing thread needs, 64-byte aligned.
  static constexpr int64_t kScratchBytes = 16384;

  // Any number of rows. `scratch` holds at least kScratchBytes.
  void Execute(const void* a, const void* b, float* c, int64_t rows, std::byte* scratch) const;

  // Gives back what the processor keeps for matrix tiles; called by each thread when its run of Executes ends.
  static void ReleaseThread();

 private:
  struct Kernels;
  explicit Brgemm(std::unique_ptr<Kernels> kernels);

  std::unique_ptr<Kernels> kernels_;
};

}  // namespace quire
