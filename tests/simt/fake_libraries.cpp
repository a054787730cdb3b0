/* Replaces kernels/library, which calls cuBLASLt and cuDNN: computes products in plain loops and convolutions by train/oracle.h,
 * and replaces the tuner, so that engines take the first candidate. Replaces kernels/hopper/support.cu. */
#include <cublasLt.h>
#include <cuda_fp16.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "hopper/support.h"
#include "library/conv.h"
#include "library/gemm.h"
#include "library/tune.h"
#include "hash.h"
#include "train/oracle.h"

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = (cudnnHandle_t)handle; /* any non-NULL value; it is never dereferenced */
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
const char *cudnnGetErrorString(cudnnStatus_t) { return "refused by the emulator of tests/simt"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = (cublasLtHandle_t)handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char *cublasLtGetStatusName(cublasStatus_t) { return "refused by the emulator of tests/simt"; }
}

/* The environment variable RL_SIMT_WGMMA=0 selects the kernels for devices without wgmma. */
bool rl_hopper_has_wgmma(const rl_device *) {
  const char *choice = getenv("RL_SIMT_WGMMA");
  return !choice || strcmp(choice, "0") != 0;
}

static double load(const void *from, int64_t i, cudaDataType_t type) {
  return type == CUDA_R_16F ? (double)__half2float(((const __half *)from)[i]) : (double)((const float *)from)[i];
}

static void store(void *to, int64_t i, cudaDataType_t type, double value) {
  if (type == CUDA_R_16F) ((__half *)to)[i] = __float2half_rn((float)value);
  else ((float *)to)[i] = (float)value;
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
double rl_gemm_algorithm_us(const rl_gemm *) { return 0; }
int rl_gemm_algorithm_rank(const rl_gemm *) { return 0; }

/* Returns [rows][k], from element `first` of an operand on. */
static std::vector<double> load_rows(const void *operand, int64_t first, int64_t rows, int64_t k, int64_t row_step,
                                     int64_t k_step, cudaDataType_t type) {
  std::vector<double> values((size_t)(rows * k));
  for (int64_t i = 0; i < rows * k; i++) values[(size_t)i] = load(operand, first + i / k * row_step + i % k * k_step, type);
  return values;
}

int rl_gemm_enqueue(rl_gemm *gemm, rl_stream, rl_error *) {
  const rl_gemm_shape &shape = gemm->shape;
  for (int64_t product = 0; product < shape.batch_count; product++) {
    const std::vector<double> a = load_rows(gemm->a, product * shape.stride_a, shape.m, shape.k,
                                            shape.transpose_a ? shape.lda : 1, shape.transpose_a ? 1 : shape.lda, shape.input),
                              b = load_rows(gemm->b, product * shape.stride_b, shape.n, shape.k,
                                            shape.transpose_b ? 1 : shape.ldb, shape.transpose_b ? shape.ldb : 1, shape.input);
    for (int64_t i = 0; i < shape.m * shape.n; i++) {
      const double *left = &a[(size_t)(i % shape.m * shape.k)], *right = &b[(size_t)(i / shape.m * shape.k)];
      double sum = 0;
      for (int64_t k = 0; k < shape.k; k++) sum += left[k] * right[k];
      store(gemm->d, product * shape.stride_d + i / shape.m * shape.ldd + i % shape.m, shape.output, sum);
    }
  }
  return 0;
}

/* --- convolutions ------------------------------------------------------------------------------------------------------ */

struct rl_dnn {
  rl_conv_shape shape;
  void *x, *weights, *y;
};

/* A tensor in memory, [images][channels][pixels] or, with channels_last, [images][pixels][channels]. values: its values as
 * [images][channels][pixels]. */
struct tensor {
  void *memory;
  int64_t images, channels, pixels;
  bool channels_last;
  cudaDataType_t type;
  std::vector<double> values;
  tensor(void *memory_, int64_t images_, int64_t channels_, int64_t pixels_, const rl_conv_shape &shape)
      : memory(memory_),
        images(images_),
        channels(channels_),
        pixels(pixels_),
        channels_last(shape.channels_last),
        type(shape.type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F),
        values((size_t)(images_ * channels_ * pixels_)) {}
  int64_t memory_index(int64_t i) const {
    const int64_t image = i / (channels * pixels), channel = i / pixels % channels, pixel = i % pixels;
    return channels_last ? (image * pixels + pixel) * channels + channel : i;
  }
  double *load_values() {
    for (size_t i = 0; i < values.size(); i++) values[i] = load(memory, memory_index((int64_t)i), type);
    return values.data();
  }
  void store_values() const {
    for (size_t i = 0; i < values.size(); i++) store(memory, memory_index((int64_t)i), type, values[i]);
  }
};

int rl_conv_open(cudnnHandle_t, const rl_conv_shape *shape, void *x, void *weights, void *y, rl_dnn_search, rl_stream,
                 rl_dnn **plan, rl_error *) {
  *plan = new rl_dnn{*shape, x, weights, y};
  return 0;
}

int rl_dnn_enqueue(rl_dnn *plan, rl_stream, rl_error *) {
  const rl_conv_shape &shape = plan->shape;
  const int64_t side = shape.h + 2 * shape.pad - shape.kernel + 1;
  const rl_oracle_conv conv = {(int)shape.c, (int)shape.h, (int)shape.k, (int)shape.pad};
  tensor x(plan->x, shape.n, shape.c, shape.h * shape.w, shape),
      weights(plan->weights, shape.k, shape.c, shape.kernel * shape.kernel, shape),
      y(plan->y, shape.n, shape.k, side * side, shape);
  std::vector<double> bias((size_t)shape.k);
  switch (shape.pass) {
    case RL_CONV_FORWARD:
      rl_oracle_conv_forward(&conv, (int)shape.n, x.load_values(), weights.load_values(), bias.data(), y.values.data());
      y.store_values();
      break;
    case RL_CONV_BACKWARD_DATA:
      rl_oracle_conv_input_gradient(&conv, (int)shape.n, y.load_values(), weights.load_values(), x.values.data());
      x.store_values();
      break;
    case RL_CONV_BACKWARD_FILTER:
      rl_oracle_conv_weight_gradient(&conv, (int)shape.n, x.load_values(), y.load_values(), weights.values.data(), bias.data());
      weights.store_values();
      break;
  }
  return 0;
}

int rl_dnn_set_workspace(rl_dnn *, void *, rl_error *) { return 0; }
void rl_dnn_close(rl_dnn *plan) { delete plan; }

const rl_dnn_choice *rl_dnn_read_choice(const rl_dnn *) {
  static const rl_dnn_choice oracle = {"the oracle", 0, 0, 0, true};
  return &oracle;
}

/* --- tuning ------------------------------------------------------------------------------------------------------------ */

int rl_tune_measure_us(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                       rl_error *err) {
  *us = 1;
  return enqueue(arg, stream, err);
}

int rl_tune_fill_noise(void *memory, size_t count, size_t value_bytes, rl_stream, rl_error *) {
  for (size_t i = 0; i < count; i++)
    store(memory, (int64_t)i, value_bytes == 2 ? CUDA_R_16F : CUDA_R_32F, (double)(rl_hash64(i) >> 40) * 0x1p-23 - 1);
  return 0;
}

int rl_tune_set_cache_key_prefix(const rl_device *, rl_error *) {
  rl_tuning_cache_set_key_prefix("simt");
  return 0;
}
