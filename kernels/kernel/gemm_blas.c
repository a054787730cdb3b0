/* The engine "openblas" of gemm. Each thread computes a panel of C: some columns of C, or some rows if C has at least as many
 * rows as columns. fp16 and bf16 are converted to float and back; the measured time includes the conversion. */
#include <cblas.h>
#include <errno.h>
#include <stdlib.h>

#include "kernel/cpu.h"
#include "kernel/instance.h"
#include "kernel/parallel.h"

enum { M, N, K }; /* indices of the shape's sizes */
enum {
  CHUNK_ELEMENTS = 1 << 16, /* elements that a thread converts per task */
  MIN_PANEL = 16            /* minimum number of rows or columns of a panel */
};

typedef struct blas_operands {
  void *a, *b, *c;    /* operands of the BLAS call: the kernel's buffers, or converted[] */
  void *converted[3]; /* A, B and C as float, when the kernel's type is fp16 or bf16 */
} blas_operands;

static void close_blas(void *engine_state) {
  blas_operands *operands = engine_state;
  for (int i = 0; i < 3; i++) free(operands->converted[i]);
  free(operands);
}

static bool needs_conversion(const rl_kernel_instance *kernel) {
  return kernel->params.dtype == RL_DTYPE_FP16 || kernel->params.dtype == RL_DTYPE_BF16;
}

/* --- a product --------------------------------------------------------------------------------------------------------- */

static bool splits_columns(const rl_kernel_instance *kernel) { return kernel->shape.size[N] > kernel->shape.size[M]; }

static int multiply_panel(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const rl_kernel_instance *kernel = context;
  const blas_operands *operands = kernel->engine_state;
  const bool by_columns = splits_columns(kernel);
  const int m = (int)(by_columns ? kernel->shape.size[M] : count), n = (int)(by_columns ? count : kernel->shape.size[N]);
  const int k = (int)kernel->shape.size[K], ld = (int)kernel->shape.size[N];
  const int64_t a = by_columns ? 0 : first * k, b = by_columns ? first : 0, c = by_columns ? first : first * ld;
  (void)thread, (void)err;
  if (kernel->params.dtype == RL_DTYPE_FP64)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, (double *)operands->a + a, k, (double *)operands->b + b,
                ld, 0, (double *)operands->c + c, ld);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, (float *)operands->a + a, k, (float *)operands->b + b, ld,
                0, (float *)operands->c + c, ld);
  return 0;
}

static int multiply_all(rl_kernel_instance *kernel, rl_error *err) {
  const int64_t panels = rl_thread_pool_thread_count(kernel->thread_pool),
                side = kernel->shape.size[splits_columns(kernel) ? N : M];
  const int64_t share = (side + panels - 1) / panels, panel = share < MIN_PANEL ? MIN_PANEL : share;
  return rl_parallel_for(kernel->thread_pool, kernel->base.device, side, panel, multiply_panel, kernel, err);
}

/* --- converting -------------------------------------------------------------------------------------------------------- */

typedef struct conversion {
  int dtype;
  void *storage; /* elements of type dtype: fp16 or bf16 */
  float *floats;
} conversion;

static int widen(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const conversion *task = context;
  (void)thread, (void)err;
  rl_dtype_to_float(task->dtype, (uint16_t *)task->storage + first, count, task->floats + first);
  return 0;
}

static int narrow(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const conversion *task = context;
  (void)thread, (void)err;
  rl_dtype_from_float(task->dtype, task->floats + first, count, (uint16_t *)task->storage + first);
  return 0;
}

static int convert(rl_kernel_instance *kernel, rl_parallel_function *function, void *storage, void *floats, int64_t count,
                   rl_error *err) {
  conversion task = {kernel->params.dtype, storage, floats};
  return rl_parallel_for(kernel->thread_pool, kernel->base.device, count, CHUNK_ELEMENTS, function, &task, err);
}

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *kernel = arg;
  const rl_kernel_operator *op = kernel->params.op;
  const blas_operands *operands = kernel->engine_state;
  (void)stream;
  if (!needs_conversion(kernel)) return multiply_all(kernel, err);
  return convert(kernel, widen, kernel->in[0], operands->a, op->input_elements(&kernel->shape, 0), err) < 0 ||
                 convert(kernel, widen, kernel->in[1], operands->b, op->input_elements(&kernel->shape, 1), err) < 0 ||
                 multiply_all(kernel, err) < 0 ||
                 convert(kernel, narrow, kernel->out, operands->c, op->output_elements(&kernel->shape), err) < 0
             ? -1
             : 0;
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

static int allocate_blas(rl_kernel_instance *kernel, rl_error *err) {
  const rl_kernel_operator *op = kernel->params.op;
  const int64_t counts[] = {op->input_elements(&kernel->shape, 0), op->input_elements(&kernel->shape, 1),
                            op->output_elements(&kernel->shape)};
  blas_operands *operands = calloc(1, sizeof *operands);
  bool failed = operands == NULL;
  if (failed) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a product");
  kernel->engine_state = operands;
  kernel->engine_close = close_blas;
  for (int i = 0; i < 3 && needs_conversion(kernel); i++)
    failed |= (operands->converted[i] = malloc((size_t)counts[i] * sizeof(float))) == NULL;
  if (failed) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a product's operands as float");
  operands->a = needs_conversion(kernel) ? operands->converted[0] : kernel->in[0];
  operands->b = needs_conversion(kernel) ? operands->converted[1] : kernel->in[1];
  operands->c = needs_conversion(kernel) ? operands->converted[2] : kernel->out;
  openblas_set_num_threads(1); /* multiply_panel runs on the threads of the pool */
  return 0;
}

static int open_blas(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_kernel_instance *kernel;
  if (rl_kernel_open(device, params, enqueue, &kernel, err) < 0) return -1;
  if (allocate_blas(kernel, err) < 0) {
    kernel->base.ops->close(&kernel->base);
    return -1;
  }
  *instance = &kernel->base;
  return 0;
}

static const rl_engine_description description = {.name = "openblas",
                                                  .workload = "gemm",
                                                  .device = RL_DEVICE_CPU,
                                                  .summary = "OpenBLAS, panels distributed over threads",
                                                  .supports = rl_kernel_cpu_supports};
const rl_engine rl_kernel_openblas_gemm = {.description = &description, .open = open_blas};
