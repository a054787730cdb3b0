/* gemm on CUDA, by cuBLASLt. The variant `searched` times up to 32 algorithms that cuBLASLt's heuristic proposes, with a warm
 * cache. fp32 is IEEE single precision. Algorithms that split k add the partial sums in FP32 before the result is rounded to
 * fp16 or bf16. */
#include <cstdlib>

#include "kernel/library.cuh"
#include "library/gemm.h"

enum { M, N, K }; /* indices of the shape's sizes */
enum { WORKSPACE_BYTES = 64 << 20, MAX_SEARCHED_ALGORITHMS = 32 };

/* State of the engine, stored in rl_kernel_instance.engine_state. */
typedef struct engine {
  rl_device *device;
  cublasLtHandle_t cublas;
  rl_gemm *product;
  void *workspace;
  rl_open_measurement rank;
} engine;

static void close_engine(void *opaque) {
  engine *self = (engine *)opaque;
  rl_gemm_close(self->product);
  self->device->ops->release(self->device, self->workspace);
  if (self->cublas) cublasLtDestroy(self->cublas);
  free(self);
}

/* Returns the shape for cuBLASLt, which expects column-major matrices. A row-major matrix is its transpose in column-major order,
 * so cuBLASLt computes Cᵀ = Bᵀ Aᵀ. */
static rl_gemm_shape column_major_shape(const rl_kernel_instance *kernel) {
  static const cudaDataType_t types[RL_DTYPE_COUNT] = {CUDA_R_64F, CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
  const int64_t m = kernel->shape.size[M], n = kernel->shape.size[N], k = kernel->shape.size[K];
  const cudaDataType_t type = types[kernel->params.dtype];
  rl_gemm_shape shape = {};
  shape.m = n, shape.n = m, shape.k = k;
  shape.lda = n, shape.ldb = k, shape.ldd = n;
  shape.batch_count = 1;
  shape.input = shape.output = type;
  shape.allow_tf32 = kernel->params.dtype == RL_DTYPE_TF32;
  shape.exact_split_k = true;
  return shape;
}

static int open_engine(rl_kernel_instance *kernel, rl_error *err) {
  rl_device *device = kernel->base.device;
  engine *self = (engine *)calloc(1, sizeof *self);
  if (!self) return rl_fail_errno(err, "preparing a product");
  kernel->engine_state = self;
  self->device = device;
  if (rl_tune_set_cache_key_prefix(device, err) < 0) return -1;
  if (rl_cublas_check(cublasLtCreate(&self->cublas), "starting cuBLASLt", err) < 0) return -1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, WORKSPACE_BYTES, &self->workspace, err) < 0) return -1;
  const rl_gemm_shape shape = column_major_shape(kernel);
  if (rl_gemm_open(self->cublas, &shape, kernel->in[1], kernel->in[0], kernel->out, self->workspace, WORKSPACE_BYTES,
                   kernel->variant == RL_VARIANT_SEARCHED ? MAX_SEARCHED_ALGORITHMS : 1, device->stream, &self->product, err) < 0)
    return rl_kernel_fail_unsupported(err);
  rl_kernel_record_algorithm(kernel, rl_gemm_algorithm_rank(self->product), true, &self->rank);
  return 0;
}

static int launch(const rl_kernel_instance *kernel, cudaStream_t stream, rl_error *err) {
  return rl_gemm_enqueue(((engine *)kernel->engine_state)->product, stream, err);
}

static const rl_kernel_launcher launcher = {launch, open_engine, close_engine};
RL_KERNEL_CUDA_ENGINE(gemm, "cublaslt", "cuBLASLt", launcher)
