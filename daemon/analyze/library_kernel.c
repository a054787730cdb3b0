/* Table of the names of kernels in cuBLAS (with cuBLASLt) and cuDNN. */
#include "analyze/library_kernel.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#define EITHER "cuBLAS or cuDNN"

/* fnmatch patterns for the whole name without "void ". Names that application authors also use, such as sgemm, are excluded. */
static const struct {
  const char *pattern, *library;
} names[] = {
    {"nvjet_*", "cuBLAS"},
    {"cublas::*", "cuBLAS"},
    {"cublasLt::*", "cuBLAS"},
    {"splitKreduce_kernel<*", "cuBLAS"},
    {"gemmSN_[NT][NT]_kernel*", "cuBLAS"},
    {"gemmk1_kernel<*", "cuBLAS"},
    {"gemv2[NT]_kernel*<*", "cuBLAS"},
    {"gemvNSP_kernel<*", "cuBLAS"},
    {"gemvx::kernel<*", "cuBLAS"},
    {"internal::gemvx::kernel<*", "cuBLAS"},
    {"sm[0-9]*_xmma_*__[0-9]x_cublas", "cuBLAS"},
    {"sm[0-9]*_xmma_*__[0-9]x_cudnn", "cuDNN"},
    {"sm[0-9]*_xmma_fprop_*", "cuDNN"},
    {"sm[0-9]*_xmma_dgrad_*", "cuDNN"},
    {"sm[0-9]*_xmma_wgrad_*", "cuDNN"},
    {"sm[0-9]*_xmma_*", EITHER},
    {"cudnn::*", "cuDNN"},
    {"cudnn_generated_*", "cuDNN"},
    {"cudnn_infer_*", "cuDNN"},
    {"cudnn_train_*", "cuDNN"},
    {"*cudnn_*_scudnn_*", "cuDNN"},
    {"implicit_convolve_sgemm<*", "cuDNN"},
    {"precomputed_convolve_sgemm<*", "cuDNN"},
    {"cutlass__5x_cudnn::*", "cuDNN"},
    {"cask__5x_cudnn::*", "cuDNN"},
    {"cask_plugin__5x_cudnn::*", "cuDNN"},
    {"cutlass_[0-9][0-9]_*", EITHER}, /* names that CUTLASS's own generator makes have no architecture number here */
    {"cutlass::Kernel<cutlass_[0-9][0-9]_*", EITHER},
    {"cutlass::Kernel2<cutlass_[0-9][0-9]_*", EITHER},
    {"maxwell_*gemm_*[0-9]x[0-9]*_[nt][nt]", EITHER},
    {"volta_*gemm_*[0-9]x[0-9]*_[nt][nt]", EITHER},
    {"turing_*gemm_*[0-9]x[0-9]*_[nt][nt]", EITHER},
    {"ampere_*gemm_*[0-9]x[0-9]*_[nt][nt]", EITHER},
    {"maxwell_*scudnn_*", "cuDNN"},
    {"volta_*scudnn_*", "cuDNN"},
    {"turing_*scudnn_*", "cuDNN"},
    {"ampere_*scudnn_*", "cuDNN"},
};

const char *rl_library_of_kernel(const char *name) {
  static const char return_type[] = "void ";
  if (strncmp(name, return_type, sizeof return_type - 1) == 0) name += sizeof return_type - 1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (fnmatch(names[i].pattern, name, 0) == 0) return names[i].library;
  return NULL;
}

/* The pipelines of matrix products. A kernel that another pipeline limits may use tensor cores already. */
static const struct {
  const char *pipeline, *advice;
} by_pipeline[] = {
    {"fma", "Use tensor cores if the call allows them: TF32, FP16 or BF16 with extents that are multiples of 8."},
    {"fp64", "Use a lower precision, such as FP32, or a call that uses the FP64 tensor cores."},
    {"tensor", "Use a lower precision, such as FP16 instead of TF32 or FP8 instead of FP16, or fewer operations."},
};

const char *rl_library_advice(const rl_kernel_verdict *verdict) {
  static const char *const by_bound[] = {
      [RL_KERNEL_BOUND_UNKNOWN] =
          "Its caller can change the shape (pad extents to multiples of the tile), the layout, the precision, the "
          "algorithm and the batch.",
      [RL_KERNEL_BOUND_DRAM] =
          "Move fewer bytes: a lower precision, a fused epilogue (bias, activation) instead of a separate kernel, or a "
          "layout that the library does not have to convert.",
      [RL_KERNEL_BOUND_L2] =
          "Choose larger extents per call, or another algorithm with larger tiles; a lower precision halves the traffic.",
      [RL_KERNEL_BOUND_L1] =
          "Choose another algorithm (the heuristics list several), pad extents to multiples of 8 elements, or use a "
          "layout whose innermost extent is contiguous.",
      [RL_KERNEL_BOUND_PIPELINE] = "Choose another algorithm, or give one call less work.",
      [RL_KERNEL_BOUND_ATOMICS] = "Choose an algorithm without split-K or atomic accumulation, or a deterministic one.",
      [RL_KERNEL_BOUND_LATENCY] =
          "Give one call more work: a larger batch, several products in one batched call, or another algorithm.",
      [RL_KERNEL_BOUND_LAUNCH] =
          "The shape has too few tiles for this device: batch several calls, use split-K or an algorithm with smaller "
          "tiles, or run other kernels at the same time.",
      [RL_KERNEL_BOUND_TAIL] = "Choose extents that make whole waves of tiles, or an algorithm with another tile size.",
      [RL_KERNEL_BOUND_TOO_SMALL] = "Batch several calls into one, or capture the sequence in a CUDA graph.",
  };
  for (size_t i = 0; verdict->pipeline && i < sizeof by_pipeline / sizeof *by_pipeline; i++)
    if (strcmp(by_pipeline[i].pipeline, verdict->pipeline) == 0) return by_pipeline[i].advice;
  return by_bound[verdict->bound];
}
