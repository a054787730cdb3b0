/* In the place of kernels/library, which calls cuBLASLt and cuDNN: products in plain loops, convolutions by the oracle, and a
 * tuner that takes what comes first. The engines around them are the project's own. */
#include <cublasLt.h>
#include <cuda_fp16.h>

#include <vector>

#include "library/conv.h"
#include "library/gemm.h"
#include "library/tune.h"
#include "hash.h"
#include "train/oracle.h"

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = (cudnnHandle_t)handle; /* not NULL, and never looked into */
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
const char *cudnnGetErrorString(cudnnStatus_t) { return "refused by the machine of tests/simt"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = (cublasLtHandle_t)handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char *cublasLtGetStatusName(cublasStatus_t) { return "refused by the machine of tests/simt"; }
}

static double value(const void *of, int64_t at, cudaDataType_t type) {
  return type == CUDA_R_16F ? (double)__half2float(((const __half *)of)[at]) : (double)((const float *)of)[at];
}

static void store(void *to, int64_t at, cudaDataType_t type, double value) {
  if (type == CUDA_R_16F) ((__half *)to)[at] = __float2half_rn((float)value);
  else ((float *)to)[at] = (float)value;
}

/* --- products ---------------------------------------------------------------------------------------------------------- */

struct rl_gemm {
  rl_gemm_shape shape;
  const void *a, *b;
  void *d;
};

int rl_gemm_open(cublasLtHandle_t, const rl_gemm_shape *shape, const void *a, const void *b, void *d, void *, size_t, int,
                 rl_stream, rl_gemm **gemm, rl_error *) {
  *gemm = new rl_gemm{*shape, a, b, d};
  return 0;
}

void rl_gemm_close(rl_gemm *gemm) { delete gemm; }
double rl_gemm_us(const rl_gemm *) { return 0; }
int rl_gemm_rank(const rl_gemm *) { return 0; }

/* Rows of one side of a product, one after the other, each along k. */
static std::vector<double> rows_of(const void *of, int64_t from, int64_t rows, int64_t k, int64_t row_step, int64_t k_step,
                                   cudaDataType_t type) {
  std::vector<double> made((size_t)(rows * k));
  for (int64_t i = 0; i < rows * k; i++) made[(size_t)i] = value(of, from + i / k * row_step + i % k * k_step, type);
  return made;
}

int rl_gemm_enqueue(rl_gemm *gemm, rl_stream, rl_error *) {
  const rl_gemm_shape &s = gemm->shape;
  for (int64_t p = 0; p < s.batch; p++) {
    const std::vector<double> a = rows_of(gemm->a, p * s.stride_a, s.m, s.k, s.transpose_a ? s.lda : 1, s.transpose_a ? 1 : s.lda,
                                          s.input),
                              b = rows_of(gemm->b, p * s.stride_b, s.n, s.k, s.transpose_b ? 1 : s.ldb, s.transpose_b ? s.ldb : 1,
                                          s.input);
    for (int64_t i = 0; i < s.m * s.n; i++) {
      const double *left = &a[(size_t)(i % s.m * s.k)], *right = &b[(size_t)(i / s.m * s.k)];
      double sum = 0;
      for (int64_t k = 0; k < s.k; k++) sum += left[k] * right[k];
      store(gemm->d, p * s.stride_d + i / s.m * s.ldd + i % s.m, s.output, sum);
    }
  }
  return 0;
}

/* --- convolutions ------------------------------------------------------------------------------------------------------ */

struct rl_dnn {
  rl_conv_shape shape;
  void *x, *weights, *y;
};

/* A tensor images × planes × pixels, or images × pixels × planes in memory: as doubles, and back. */
struct planes {
  void *at;
  int64_t images, count, pixels;
  bool last;
  cudaDataType_t type;
  std::vector<double> values;
  planes(void *memory, int64_t n, int64_t of, int64_t each, const rl_conv_shape &shape)
      : at(memory),
        images(n),
        count(of),
        pixels(each),
        last(shape.channels_last),
        type(shape.type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F),
        values((size_t)(n * of * each)) {}
  int64_t place(int64_t i) const {
    const int64_t image = i / (count * pixels), plane = i / pixels % count, pixel = i % pixels;
    return last ? (image * pixels + pixel) * count + plane : i;
  }
  double *load() {
    for (size_t i = 0; i < values.size(); i++) values[i] = value(at, place((int64_t)i), type);
    return values.data();
  }
  void save() const {
    for (size_t i = 0; i < values.size(); i++) store(at, place((int64_t)i), type, values[i]);
  }
};

int rl_conv_open(cudnnHandle_t, const rl_conv_shape *shape, void *x, void *weights, void *y, rl_dnn_search, rl_stream,
                 rl_dnn **plan, rl_error *) {
  *plan = new rl_dnn{*shape, x, weights, y};
  return 0;
}

int rl_dnn_enqueue(rl_dnn *plan, rl_stream, rl_error *) {
  const rl_conv_shape &s = plan->shape;
  const int64_t side = s.h + 2 * s.pad - s.kernel + 1;
  const rl_oracle_conv conv = {(int)s.c, (int)s.h, (int)s.k, (int)s.pad};
  planes x(plan->x, s.n, s.c, s.h * s.w, s), weights(plan->weights, s.k, s.c, s.kernel * s.kernel, s),
      y(plan->y, s.n, s.k, side * side, s);
  std::vector<double> bias((size_t)s.k);
  switch (s.pass) {
    case RL_CONV_FORWARD:
      rl_oracle_conv_forward(&conv, (int)s.n, x.load(), weights.load(), bias.data(), y.values.data());
      y.save();
      break;
    case RL_CONV_BACKWARD_DATA:
      rl_oracle_conv_input_gradient(&conv, (int)s.n, y.load(), weights.load(), x.values.data());
      x.save();
      break;
    case RL_CONV_BACKWARD_FILTER:
      rl_oracle_conv_weight_gradient(&conv, (int)s.n, x.load(), y.load(), weights.values.data(), bias.data());
      weights.save();
      break;
  }
  return 0;
}

int rl_dnn_bind(rl_dnn *, void *, rl_error *) { return 0; }
void rl_dnn_close(rl_dnn *plan) { delete plan; }

const rl_dnn_choice *rl_dnn_chosen(const rl_dnn *) {
  static const rl_dnn_choice oracle = {"the oracle", 0, 0, 0, true};
  return &oracle;
}

/* --- choices ----------------------------------------------------------------------------------------------------------- */

int rl_tune_time(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                 rl_error *err) {
  *us = 1;
  return enqueue(arg, stream, err);
}

int rl_tune_fill_noise(void *memory, size_t count, size_t value_bytes, rl_stream, rl_error *) {
  for (size_t i = 0; i < count; i++)
    store(memory, (int64_t)i, value_bytes == 2 ? CUDA_R_16F : CUDA_R_32F, (double)(rl_hash64(i) >> 40) * 0x1p-23 - 1);
  return 0;
}

int rl_tune_set_scope(const rl_device *, rl_error *) {
  rl_choices_set_scope("simt");
  return 0;
}
