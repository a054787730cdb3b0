/* Implements gallery.h: kernels that stress one unit of the GPU each, to compare the counters of two profilers, and a step that
 * launches each of them once. All kernels read the buffer `from` and write the buffer `to`. A kernel whose results are not used
 * stores them under a condition that is never true (`if (sum == 12345) ...`), so that the compiler cannot remove the work. */
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "gallery.h"

namespace {

const size_t BUFFER_BYTES = 128 << 20;
const int SIDE = GALLERY_SIDE;
struct gallery_buffers {
  char *from, *to;
  cudaArray_t array; /* of SIDE x SIDE floats */
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
} buffers;

}  // namespace

__global__ void gallery_copy(const float4 *from, float4 *to) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  to[i] = from[i];
}

__global__ void gallery_relu(const __half *x, __half *y, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hmax(x[i], __half(0.0f));
}

__global__ void gallery_flops(float *sink, float factor) {
  float value = threadIdx.x;
#pragma unroll
  for (int i = 0; i < GALLERY_FMAS_PER_THREAD; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(value) : "f"(factor));
  if (value == 12345.0f) *sink = value;
}

__global__ void gallery_fp64(double *sink, double factor) {
  double value = threadIdx.x;
#pragma unroll
  for (int i = 0; i < GALLERY_FMAS_PER_THREAD; i++) asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+d"(value) : "d"(factor));
  if (value == 12345.0) *sink = value;
}

__global__ void gallery_transpose(const float *from, float *to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  to[(size_t)x * SIDE + y] = from[(size_t)y * SIDE + x];
}

/* Replaces each row of the matrix by its softmax: exp(value - maximum) / sum of the exponentials. A block of 256 threads has one
 * row; `partials` collects one value of each of its 8 warps. */
__global__ void gallery_softmax(const float *from, float *to) {
  __shared__ float partials[8];
  const float *row = from + (size_t)blockIdx.x * SIDE;
  float maximum = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < SIDE; i += blockDim.x) maximum = fmaxf(maximum, row[i]);
  for (int distance = 16; distance > 0; distance /= 2) maximum = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, distance));
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = maximum;
  __syncthreads();
  for (int i = 0; i < 8; i++) maximum = fmaxf(maximum, partials[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < SIDE; i += blockDim.x) sum += __expf(row[i] - maximum);
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; i++) sum += partials[i];
  for (int i = threadIdx.x; i < SIDE; i += blockDim.x) to[(size_t)blockIdx.x * SIDE + i] = __expf(row[i] - maximum) / sum;
}

/* Normalises each row of 2 * blockDim.x FP16 values to mean 0 and variance 1; a block has one row, a thread two values. */
__global__ void gallery_layernorm(const __half2 *from, __half2 *to) {
  __shared__ float sums[2];
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  __syncthreads();
  __half2 value = from[(size_t)blockIdx.x * blockDim.x + threadIdx.x];
  float2 v = __half22float2(value);
  atomicAdd(&sums[0], v.x + v.y);
  atomicAdd(&sums[1], v.x * v.x + v.y * v.y);
  __syncthreads();
  float mean = sums[0] / (2 * blockDim.x), scale = rsqrtf(sums[1] / (2 * blockDim.x) - mean * mean + 1e-5f);
  to[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = __floats2half2_rn((v.x - mean) * scale, (v.y - mean) * scale);
}

/* Computes one frequency per thread: the power of the sine and the cosine of that frequency in the samples, which are pairs of
 * time and value. */
__global__ void gallery_periodogram(const float *samples, float *power, int count) {
  float frequency = 0.01f + 1e-5f * (blockIdx.x * blockDim.x + threadIdx.x), sine_sum = 0, cosine_sum = 0, sine_squares = 0,
        cosine_squares = 0;
  for (int i = 0; i < count; i++) {
    float sine, cosine;
    __sincosf(frequency * samples[2 * i], &sine, &cosine);
    sine_sum += samples[2 * i + 1] * sine;
    cosine_sum += samples[2 * i + 1] * cosine;
    sine_squares += sine * sine;
    cosine_squares += cosine * cosine;
  }
  power[blockIdx.x * blockDim.x + threadIdx.x] = sine_sum * sine_sum / sine_squares + cosine_sum * cosine_sum / cosine_squares;
}

/* Makes the lanes of a warp leave a loop after different numbers of iterations, then take two branches. */
__global__ void gallery_divergent(const int *from, int *to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, value = from[i];
  for (int round = 0; round < threadIdx.x % 32; round++) value = value * 3 + round;
  if (threadIdx.x % 2 == 0) value ^= value >> 3;
  else value += 77;
  to[i] = value;
}

/* Keeps 96 values per thread, more than the 64 registers that a block of 1024 threads leaves to each, so that the compiler spills
 * some into local memory. */
__global__ void __launch_bounds__(1024) gallery_spilling(const float *from, float *to, int rounds) {
  float value[96];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 96; k++) value[k] = from[i + k];
  for (int round = 0; round < rounds; round++)
    for (int k = 0; k < 96; k++) value[k] = value[k] * 1.25f + value[(k + round) % 96];
  float sum = 0;
  for (int k = 0; k < 96; k++) sum += value[k];
  to[i] = sum;
}

/* Loads from shared memory: lane i of a warp loads word i * STRIDE_WORDS. With STRIDE_WORDS 32, all lanes access one bank, so
 * that their accesses are serialized; with 1, each lane accesses a separate bank. */
template <int STRIDE_WORDS> __global__ void gallery_banks(float *sink) {
  __shared__ volatile float cells[32 * 32];
  float sum = 0;
  cells[threadIdx.x * STRIDE_WORDS % 1024] = threadIdx.x;
  __syncthreads();
  for (int i = 0; i < GALLERY_BANK_LOADS_PER_WARP; i++)
    sum += cells[(threadIdx.x % 32) * STRIDE_WORDS + (STRIDE_WORDS == 32 ? i % 32 : 0)];
  if (sum == 12345.0f) *sink = sum;
}

/* Adds up the first half of the buffer: each thread sums a share, each warp reduces by shuffles, and the warps use atomicAdd. */
__global__ void gallery_reduction(const float4 *from, float *sum) {
  float partial = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < BUFFER_BYTES / 2 / sizeof(float4);
       i += (size_t)gridDim.x * blockDim.x) {
    float4 v = from[i];
    partial += v.x + v.y + v.z + v.w;
  }
  for (int distance = 16; distance > 0; distance /= 2) partial += __shfl_xor_sync(~0u, partial, distance);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, partial);
}

__global__ void gallery_atomics(unsigned *bins) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bins[(i * 2654435761u) >> 20], 1u);
}

/* Multiplies two matrices of n rows and columns, c = a b, in FP16 on the tensor cores. Each warp computes a tile of 16 x 16
 * values; the four tiles of a block are below each other. */
__global__ void gallery_matrix(const __half *a, const __half *b, float *c, int n) {
  using namespace nvcuda::wmma;
  int warp = threadIdx.x / 32, row = 16 * (blockIdx.y * 4 + warp), column = 16 * blockIdx.x;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, row_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < n; k += 16) {
    load_matrix_sync(left, a + (size_t)row * n + k, n);
    load_matrix_sync(right, b + (size_t)k * n + column, n);
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(c + (size_t)row * n + column, sum, n, mem_row_major);
}

/* Doubles each value. Launched with clusters of four blocks where the device has clusters. */
__global__ void gallery_cluster(const float *from, float *to) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  to[i] = 2 * from[i];
}

__global__ void gallery_texture(cudaTextureObject_t from, float *to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  to[(size_t)y * SIDE + x] = tex2D<float>(from, x, y);
}

__global__ void gallery_surface(const float *from, cudaSurfaceObject_t to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  surf2Dwrite(from[(size_t)y * SIDE + x], to, x * (int)sizeof(float), y);
}

__global__ void gallery_sleep(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < ns);
}

namespace {

template <typename T> T *from() { return (T *)buffers.from; }
template <typename T> T *to() { return (T *)buffers.to; }
float *sink() { return (float *)buffers.to; }

/* Launches gallery_cluster in clusters of four blocks; without clusters if the device does not support them. */
void launch_in_clusters(cudaStream_t stream) {
  int device = 0, clusters = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device);
  cudaLaunchAttribute size = {};
  size.id = cudaLaunchAttributeClusterDimension;
  size.val.clusterDim = {4, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = SIDE;
  config.blockDim = 256;
  config.stream = stream;
  config.attrs = &size;
  config.numAttrs = clusters != 0;
  cudaLaunchKernelEx(&config, gallery_cluster, (const float *)from<float>(), to<float>());
}

/* Defines the enqueue function of a launch. */
#define ENQUEUE(NAME, ...)                                                                                         \
  int NAME(void *, rl_stream stream_of_step, rl_error *err) {                                                      \
    cudaStream_t stream = (cudaStream_t)stream_of_step;                                                            \
    __VA_ARGS__;                                                                                                   \
    cudaError_t result = cudaGetLastError();                                                                       \
    return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s: %s", #NAME, cudaGetErrorString(result)); \
  }
ENQUEUE(copy, gallery_copy<<<GALLERY_COPY_BYTES / 16 / 256, 256, 0, stream>>>(from<float4>(), to<float4>()))
ENQUEUE(relu, gallery_relu<<<SIDE * SIDE / 128, 128, 0, stream>>>(from<__half>(), to<__half>(), (size_t)SIDE *SIDE))
ENQUEUE(flops, gallery_flops<<<GALLERY_WARPS / 8, 256, 0, stream>>>(sink(), 0.5f))
ENQUEUE(fp64, gallery_fp64<<<GALLERY_WARPS / 8, 256, 0, stream>>>((double *)sink(), 0.5))
ENQUEUE(transpose, gallery_transpose<<<dim3(SIDE / 32, SIDE / 8), dim3(32, 8), 0, stream>>>(from<float>(), to<float>()))
ENQUEUE(softmax, gallery_softmax<<<SIDE, 256, 0, stream>>>(from<float>(), to<float>()))
ENQUEUE(layernorm, gallery_layernorm<<<8192, 512, 0, stream>>>(from<__half2>(), to<__half2>()))
ENQUEUE(periodogram, gallery_periodogram<<<4096, 256, 0, stream>>>(from<float>(), to<float>(), 114))
ENQUEUE(divergent, gallery_divergent<<<4096, 256, 0, stream>>>(from<int>(), to<int>()))
ENQUEUE(spilling, gallery_spilling<<<264, 1024, 0, stream>>>(from<float>(), to<float>(), 8))
ENQUEUE(banks_1, gallery_banks<1><<<GALLERY_BANK_WARPS / 8, 256, 0, stream>>>(sink()))
ENQUEUE(banks_32, gallery_banks<32><<<GALLERY_BANK_WARPS / 8, 256, 0, stream>>>(sink()))
ENQUEUE(reduction, gallery_reduction<<<132 * 8, 256, 0, stream>>>(from<float4>(), sink()))
ENQUEUE(atomics, gallery_atomics<<<8192, 256, 0, stream>>>((unsigned *)sink()))
ENQUEUE(matrix, gallery_matrix<<<dim3(SIDE / 16, SIDE / 64), 128, 0, stream>>>(from<__half>(), from<__half>(), to<float>(), SIDE))
ENQUEUE(cluster, launch_in_clusters(stream))
ENQUEUE(texture, gallery_texture<<<dim3(SIDE / 32, SIDE / 8), dim3(32, 8), 0, stream>>>(buffers.texture, to<float>()))
ENQUEUE(surface, gallery_surface<<<dim3(SIDE / 32, SIDE / 8), dim3(32, 8), 0, stream>>>(from<float>(), buffers.surface))
ENQUEUE(sleep, gallery_sleep<<<1, 1, 0, stream>>>(GALLERY_SLEEP_US * 1000ull))
#undef ENQUEUE

const rl_launch launches[] = {{"copy", "kernel", copy, NULL},           {"relu", "kernel", relu, NULL},
                              {"flops", "kernel", flops, NULL},         {"fp64", "kernel", fp64, NULL},
                              {"transpose", "kernel", transpose, NULL}, {"softmax", "kernel", softmax, NULL},
                              {"layernorm", "kernel", layernorm, NULL}, {"periodogram", "kernel", periodogram, NULL},
                              {"divergent", "kernel", divergent, NULL}, {"spilling", "kernel", spilling, NULL},
                              {"banks_1", "kernel", banks_1, NULL},     {"banks_32", "kernel", banks_32, NULL},
                              {"reduction", "kernel", reduction, NULL}, {"atomics", "kernel", atomics, NULL},
                              {"matrix", "kernel", matrix, NULL},       {"cluster", "kernel", cluster, NULL},
                              {"texture", "kernel", texture, NULL},     {"surface", "kernel", surface, NULL},
                              {"sleep", "kernel", sleep, NULL}};
const rl_sequence sequences[] = {{"step", launches, sizeof launches / sizeof *launches, 1}};

int do_nothing(rl_instance *, rl_error *) { return 0; }
int read_no_results(rl_instance *, rl_iteration_results *, rl_error *) { return 0; }
void close_gallery(rl_instance *) {
  cudaDestroyTextureObject(buffers.texture);
  cudaDestroySurfaceObject(buffers.surface);
  cudaFreeArray(buffers.array);
  cudaFree(buffers.from);
  cudaFree(buffers.to);
}
const rl_instance_ops ops = {do_nothing, read_no_results, do_nothing, do_nothing, close_gallery};

cudaError_t create_texture_and_surface() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaError_t result = cudaMallocArray(&buffers.array, &floats, SIDE, SIDE, cudaArraySurfaceLoadStore);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = buffers.array;
  const cudaTextureDesc sampling = {};
  if (result == cudaSuccess) result = cudaCreateTextureObject(&buffers.texture, &resource, &sampling, NULL);
  return result == cudaSuccess ? cudaCreateSurfaceObject(&buffers.surface, &resource) : result;
}

}  // namespace

extern "C" int gallery_open(rl_instance *instance, rl_device *device, rl_error *err) {
  int count = 0;
  cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    rl_fail(err, RL_CUDA, found, "no GPU here: %s", cudaGetErrorString(found));
    return 1;
  }
  cudaStream_t stream = NULL;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaMalloc((void **)&buffers.from, BUFFER_BYTES) != cudaSuccess ||
      cudaMalloc((void **)&buffers.to, BUFFER_BYTES) != cudaSuccess ||
      cudaMemset(buffers.from, 0x3c, BUFFER_BYTES) != cudaSuccess || cudaMemset(buffers.to, 0, BUFFER_BYTES) != cudaSuccess ||
      create_texture_and_surface() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
    return rl_fail(err, RL_CUDA, 0, "memory for the gallery: %s", cudaGetErrorString(cudaGetLastError()));
  device->kind = RL_DEVICE_CUDA;
  device->stream = stream;
  instance->ops = &ops;
  instance->device = device;
  instance->iteration = rl_sequence_list{"gallery", sequences, 1};
  return 0;
}
