/* gemm by cuBLASLt: `searched` times up to 32 algorithms of its heuristic with a warm cache. fp32 is IEEE single; parts of a sum
 * over k are added before the result is rounded, so that fp16 and bf16 have FP32 sums whatever the algorithm. */
#include <cstdlib>

#include "kernel/library.cuh"
#include "library/gemm.h"

enum { M, N, K }; /* sizes of the shape */
enum { WORKSPACE = 64 << 20, MOST = 32 };

typedef struct engine {
  rl_device *device;
  cublasLtHandle_t cublas;
  rl_gemm *product;
  void *workspace;
  rl_open_measurement rank;
} engine;

static void close_engine(void *closing) {
  engine *own = (engine *)closing;
  rl_gemm_close(own->product);
  own->device->ops->release(own->device, own->workspace);
  if (own->cublas) cublasLtDestroy(own->cublas);
  free(own);
}

/* Row after row is column after column transposed: Cᵀ = Bᵀ Aᵀ. */
static rl_gemm_shape transposed(const rl_kernel_instance *kernel) {
  static const cudaDataType_t types[RL_DTYPES] = {CUDA_R_64F, CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
  const int64_t m = kernel->shape.size[M], n = kernel->shape.size[N], k = kernel->shape.size[K];
  const cudaDataType_t type = types[kernel->params.dtype];
  rl_gemm_shape shape = {n, m, k, false, false, n, k, n, 1, 0, 0, 0, type, type};
  shape.tensor_float = kernel->params.dtype == RL_DTYPE_TF32;
  shape.exact_parts = true;
  return shape;
}

static int open_engine(rl_kernel_instance *kernel, rl_error *err) {
  rl_device *device = kernel->base.device;
  engine *own = (engine *)calloc(1, sizeof *own);
  if (!own) return rl_fail_errno(err, "preparing a product");
  kernel->engine = own;
  own->device = device;
  if (rl_tune_device(device, err) || rl_cublas_ok(cublasLtCreate(&own->cublas), "starting cuBLASLt", err) ||
      device->ops->allocate(device, RL_MEMORY_WORKSPACE, WORKSPACE, &own->workspace, err))
    return -1;
  const rl_gemm_shape shape = transposed(kernel);
  if (rl_gemm_open(own->cublas, &shape, kernel->in[1], kernel->in[0], kernel->out, own->workspace, WORKSPACE,
                   kernel->variant == RL_SEARCHED ? MOST : 1, device->stream, &own->product, err))
    return rl_kernel_refuse(err);
  rl_kernel_note_choice(kernel, rl_gemm_rank(own->product), true, &own->rank);
  return 0;
}

static int launch(const rl_kernel_instance *kernel, cudaStream_t stream, rl_error *err) {
  return rl_gemm_enqueue(((engine *)kernel->engine)->product, stream, err);
}

static const rl_kernel_launcher launcher = {launch, NULL, open_engine, close_engine};
RL_KERNEL_CUDA_ENGINE(gemm, "cublaslt", "cuBLASLt", launcher)
