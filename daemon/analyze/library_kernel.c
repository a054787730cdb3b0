/* Table of the names of kernels in cuBLAS (with cuBLASLt) and cuDNN. */
#include "analyze/library_kernel.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#define EITHER "cuBLAS or cuDNN"

/* fnmatch patterns of the whole name without "void ". Names that an author would also choose, such as sgemm, stay out. */
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
    {"cutlass_[0-9][0-9]_*", EITHER}, /* CUTLASS's own generator writes no architecture here */
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
  static const char result[] = "void ";
  if (strncmp(name, result, sizeof result - 1) == 0) name += sizeof result - 1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (fnmatch(names[i].pattern, name, 0) == 0) return names[i].library;
  return NULL;
}
