#include "engine/ops/brgemm.h"

#include <array>
#include <atomic>
#include <utility>

#define DNNL_EXPERIMENTAL_UKERNEL
#include <oneapi/dnnl/dnnl_ukernel.hpp>

#include "engine/base/check.h"

namespace quire {
namespace {

// Rows are covered greedily by these block sizes, so that few kernels serve every number of rows.
constexpr std::array<int64_t, 7> kRowBlocks = {128, 32, 16, 8, 4, 2, 1};

// Setting a thread up for a kernel takes 0.2 us, as long as multiplying 8 rows by 32 columns: it is done when the
// kernel changes. Numbers name kernels, as addresses may come again.
constexpr int64_t kNoKernel = -1;
thread_local int64_t configured_kernel = kNoKernel;
std::atomic<int64_t> next_kernel = 0;

constexpr int64_t kMaxTerms = 2;

dnnl::memory::data_type ToDnnl(DType dtype) {
  return dtype == DType::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

std::optional<dnnl::ukernel::brgemm> Generate(const BrgemmShape& shape, int64_t rows) {
  using dnnl::ukernel::pack_type;
  const auto type = ToDnnl(shape.input_type);
  const int64_t ldb = shape.ldb != 0 ? shape.ldb : shape.n;
  try {
    dnnl::ukernel::brgemm kernel(rows, shape.n, shape.k, /*batch_size=*/shape.terms, shape.lda, ldb, shape.ldc, type,
                                 type, dnnl::memory::data_type::f32);
    kernel.set_add_C(shape.accumulate);
    kernel.finalize();
    const auto expected_pack = shape.input_type == DType::kF32 ? pack_type::no_trans : pack_type::pack32;
    if (kernel.get_B_pack_type() != expected_pack) return std::nullopt;
    if (static_cast<int64_t>(kernel.get_scratchpad_size()) > Brgemm::kScratchBytes) return std::nullopt;
    kernel.generate();
    return kernel;
  } catch (const dnnl::error&) {  // how oneDNN says "not on this processor"
    return std::nullopt;
  }
}

}  // namespace

struct Brgemm::Kernels {
  BrgemmShape shape;
  int64_t first_number = next_kernel.fetch_add(kRowBlocks.size());
  std::array<dnnl::ukernel::brgemm, kRowBlocks.size()> by_row_block;
};

Brgemm::Brgemm(std::unique_ptr<Kernels> kernels) : kernels_(std::move(kernels)) {}
Brgemm::Brgemm(Brgemm&&) noexcept = default;
Brgemm& Brgemm::operator=(Brgemm&&) noexcept = default;
Brgemm::~Brgemm() = default;

std::optional<Brgemm> Brgemm::Create(const BrgemmShape& shape) {
  QUIRE_CHECK(shape.terms >= 1 && shape.terms <= kMaxTerms);
  auto kernels = std::make_unique<Kernels>();
  kernels->shape = shape;
  for (size_t i = 0; i < kRowBlocks.size(); ++i) {
    auto kernel = Generate(shape, kRowBlocks[i]);
    if (!kernel) return std::nullopt;
    kernels->by_row_block[i] = *std::move(kernel);
  }
  return Brgemm(std::move(kernels));
}

void Brgemm::Execute(const void* a, const void* b, float* c, int64_t rows, std::byte* scratch) const {
  const BrgemmShape& shape = kernels_->shape;
  // Of each term's A and B, in bytes.
  const dnnl_dim_t offsets[2 * kMaxTerms] = {0, 0, shape.term_stride * SizeOf(shape.input_type), 0};
  const auto* a_bytes = static_cast<const std::byte*>(a);
  int64_t row = 0;
  for (size_t i = 0; i < kRowBlocks.size(); ++i) {
    if (rows - row < kRowBlocks[i]) continue;
    const auto& kernel = kernels_->by_row_block[i];
    const int64_t number = kernels_->first_number + static_cast<int64_t>(i);
    if (configured_kernel != number) kernel.set_hw_context();
    configured_kernel = number;
    for (; rows - row >= kRowBlocks[i]; row += kRowBlocks[i]) {
      const dnnl_status_t status = dnnl_brgemm_execute(
          kernel.get(), a_bytes + row * shape.lda * SizeOf(shape.input_type), b, offsets, c + row * shape.ldc, scratch);
      QUIRE_DCHECK(status == dnnl_success);
      static_cast<void>(status);
    }
  }
}

void Brgemm::ReleaseThread() {
  configured_kernel = kNoKernel;
  dnnl::ukernel::brgemm::release_hw_context();
}

}  // namespace quire
