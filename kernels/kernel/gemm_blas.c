/* The engine "openblas" of gemm: C shared out to threads in panels of columns, or of rows where there are more of those. fp16 and
 * bf16 are converted to float and back, which is part of the time. */
#include <cblas.h>
#include <errno.h>
#include <stdlib.h>

#include "kernel/cpu.h"
#include "kernel/pieces.h"

enum { M, N, K };                        /* sizes of the shape */
enum { STEP = 1 << 16, PANEL_MIN = 16 }; /* numbers converted at once; rows or columns of a panel */

typedef struct blas {
  void *a, *b, *c;    /* what is multiplied; the kernel's own buffers where those hold such numbers */
  void *converted[3]; /* A, B and C as float, where they do not */
} blas;

static void close_blas(void *engine) {
  blas *own = engine;
  for (int i = 0; i < 3; i++) free(own->converted[i]);
  free(own);
}

static bool converts(const rl_kernel_instance *kernel) {
  return kernel->params.dtype == RL_DTYPE_FP16 || kernel->params.dtype == RL_DTYPE_BF16;
}

/* --- a product --------------------------------------------------------------------------------------------------------- */

static bool by_columns(const rl_kernel_instance *kernel) { return kernel->shape.size[N] > kernel->shape.size[M]; }

static int multiply(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const rl_kernel_instance *kernel = context;
  const blas *own = kernel->engine;
  const bool columns = by_columns(kernel);
  const int m = (int)(columns ? kernel->shape.size[M] : count), n = (int)(columns ? count : kernel->shape.size[N]);
  const int k = (int)kernel->shape.size[K], ld = (int)kernel->shape.size[N];
  const int64_t a = columns ? 0 : first * k, b = columns ? first : 0, c = columns ? first : first * ld;
  (void)thread, (void)err;
  if (kernel->params.dtype == RL_DTYPE_FP64)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, (double *)own->a + a, k, (double *)own->b + b, ld, 0,
                (double *)own->c + c, ld);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, (float *)own->a + a, k, (float *)own->b + b, ld, 0,
                (float *)own->c + c, ld);
  return 0;
}

static int multiply_all(rl_kernel_instance *kernel, rl_error *err) {
  const int64_t panels = rl_threads_count(kernel->threads), side = kernel->shape.size[by_columns(kernel) ? N : M];
  const int64_t each = (side + panels - 1) / panels;
  return rl_kernel_share(kernel, side, each < PANEL_MIN ? PANEL_MIN : each, multiply, kernel, err);
}

/* --- converting -------------------------------------------------------------------------------------------------------- */

typedef struct conversion {
  int dtype;
  void *half; /* fp16 or bf16 */
  float *single;
} conversion;

static int widen(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const conversion *of = context;
  (void)thread, (void)err;
  rl_dtype_to_float(of->dtype, (uint16_t *)of->half + first, count, of->single + first);
  return 0;
}

static int narrow(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const conversion *of = context;
  (void)thread, (void)err;
  rl_dtype_from_float(of->dtype, of->single + first, count, (uint16_t *)of->half + first);
  return 0;
}

static int convert(rl_kernel_instance *kernel, rl_part *part, void *half, void *single, int64_t count, rl_error *err) {
  conversion of = {kernel->params.dtype, half, single};
  return rl_kernel_share(kernel, count, STEP, part, &of, err);
}

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *kernel = arg;
  const rl_kernel_family *family = kernel->params.family;
  const blas *own = kernel->engine;
  (void)stream;
  if (!converts(kernel)) return multiply_all(kernel, err);
  return convert(kernel, widen, kernel->in[0], own->a, family->input_elements(&kernel->shape, 0), err) ||
                 convert(kernel, widen, kernel->in[1], own->b, family->input_elements(&kernel->shape, 1), err) ||
                 multiply_all(kernel, err) ||
                 convert(kernel, narrow, kernel->out, own->c, family->output_elements(&kernel->shape), err)
             ? -1
             : 0;
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

static int make_blas(rl_kernel_instance *kernel, rl_error *err) {
  const rl_kernel_family *family = kernel->params.family;
  const int64_t counts[] = {family->input_elements(&kernel->shape, 0), family->input_elements(&kernel->shape, 1),
                            family->output_elements(&kernel->shape)};
  blas *own = calloc(1, sizeof *own);
  bool failed = own == NULL;
  if (failed) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a product");
  kernel->engine = own;
  kernel->engine_close = close_blas;
  for (int i = 0; i < 3 && converts(kernel); i++)
    failed |= (own->converted[i] = malloc((size_t)counts[i] * sizeof(float))) == NULL;
  if (failed) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a product's numbers as float");
  own->a = converts(kernel) ? own->converted[0] : kernel->in[0];
  own->b = converts(kernel) ? own->converted[1] : kernel->in[1];
  own->c = converts(kernel) ? own->converted[2] : kernel->out;
  openblas_set_num_threads(1); /* the threads are ours */
  return 0;
}

static int open_blas(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_kernel_instance *kernel;
  if (rl_kernel_open(device, params, enqueue, &kernel, err)) return -1;
  if (make_blas(kernel, err)) {
    kernel->base.ops->close(&kernel->base);
    return -1;
  }
  *instance = &kernel->base;
  return 0;
}

static const rl_engine_description description = {.name = "openblas",
                                                  .workload = "gemm",
                                                  .device = RL_DEVICE_CPU,
                                                  .summary = "OpenBLAS, panels shared out to threads",
                                                  .supports = rl_kernel_cpu_supports};
const rl_engine rl_kernel_openblas_gemm = {.description = &description, .open = open_blas};
