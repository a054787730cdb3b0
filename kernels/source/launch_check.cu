/* Implements launch_check.h. For each checked launch, kernels on the device write a launch_record: digests of read-only buffers
 * and of guard zones, and the sum of squared errors of the result. rl_launch_check_read copies the records to the host and judges
 * them. */
#include "source/launch_check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <sodium.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cuda_check.h"
#include "hash.h"

enum { BLOCK_THREADS = 256, MAX_BLOCKS = 1024, MAX_LAUNCHES = 2048, GUARD_PATTERN = 0xa5 };

/* Results of the check of one launch, in device memory. All members are 0 before the check. */
typedef struct launch_record {
  double squared_error;                   /* sum of (result − expected)² */
  double squared_norm;                    /* sum of expected² of a reference's result; unused without a reference */
  unsigned long long first_wrong_inverse; /* ~index of the first wrong element, found by atomicMax; 0: none */
  /* Digests of each argument's buffer, and of the reference's buffer before the reference runs. */
  unsigned long long contents[RL_SOURCE_ARGUMENTS_MAX], guards[RL_SOURCE_ARGUMENTS_MAX],
      reference_contents[RL_SOURCE_ARGUMENTS_MAX];
} launch_record;

struct rl_launch_check {
  const rl_source *source;
  void *const *buffers;
  void *masked_expected;  /* on the device; NULL: no contents are expected */
  uint64_t key;           /* secret key of the mask */
  double squared_norm;    /* sum of the squares of the expected contents */
  launch_record *records; /* on the device: MAX_LAUNCHES records */
  launch_record before;   /* digests before the first launch */
  uint32_t count;         /* number of launches checked since the last rl_launch_check_read */
};

static size_t bytes_of(const rl_source_argument *argument) {
  return (size_t)argument->count * rl_source_type_size(argument->type);
}

/* --- digests ----------------------------------------------------------------------------------------------------------- */

/* Returns the sum of `value` over the thread block in thread 0; other threads get no valid result. */
template <typename T> __device__ static T block_sum(T value) {
  __shared__ T sums[BLOCK_THREADS];
  sums[threadIdx.x] = value;
  for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

/* Returns the calling thread's part of a digest. The digest is a sum of hashes of (position, 8 bytes) and, at the end,
 * (position, byte). Addition commutes, so threads can add in any order. */
__device__ static unsigned long long digest_part(const unsigned char *memory, uint64_t bytes, uint64_t first, uint64_t stride) {
  const uint64_t *words = (const uint64_t *)memory;
  unsigned long long sum = 0;
  for (uint64_t i = first; i < bytes / 8; i += stride) sum += rl_hash64(words[i] ^ rl_hash64(i));
  for (uint64_t i = bytes / 8 * 8 + first; i < bytes; i += stride) sum += rl_hash64(memory[i] ^ rl_hash64(i));
  return sum;
}

/* Adds the digest of the memory to *digest. memory must be aligned to 8 bytes. */
__global__ static void add_digest(const unsigned char *memory, uint64_t bytes, unsigned long long *digest) {
  unsigned long long sum = block_sum(
      digest_part(memory, bytes, (uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x, (uint64_t)gridDim.x * BLOCK_THREADS));
  if (threadIdx.x == 0) atomicAdd(digest, sum);
}

typedef struct guard_zones {
  const unsigned char *buffers[RL_SOURCE_ARGUMENTS_MAX]; /* NULL: none */
  uint64_t bytes[RL_SOURCE_ARGUMENTS_MAX];
} guard_zones;

/* Each block computes the digest of the two guard zones of one argument's buffer. The zone after the buffer begins at the next
 * multiple of 8 bytes; the bytes between the buffer and the zone are added one by one. */
__global__ static void add_guard_digests(guard_zones zones, unsigned long long *digests) {
  const unsigned char *buffer = zones.buffers[blockIdx.x];
  if (buffer == nullptr) return;
  const uint64_t bytes = zones.bytes[blockIdx.x], rounded = (bytes + 7) / 8 * 8;
  unsigned long long sum = digest_part(buffer - RL_SOURCE_GUARD_BYTES, RL_SOURCE_GUARD_BYTES, threadIdx.x, BLOCK_THREADS) +
                           digest_part(buffer + rounded, RL_SOURCE_GUARD_BYTES - 8, threadIdx.x, BLOCK_THREADS);
  for (uint64_t i = bytes + threadIdx.x; i < rounded; i += BLOCK_THREADS) sum += rl_hash64(buffer[i] ^ rl_hash64(~i));
  sum = block_sum(sum);
  if (threadIdx.x == 0) digests[blockIdx.x] = sum;
}

static unsigned blocks_for(uint64_t items) {
  uint64_t blocks = (items + BLOCK_THREADS - 1) / BLOCK_THREADS;
  return (unsigned)(blocks < 1 ? 1 : blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

/* Adds the digest of each buffer with access "in" to digests[index of the argument]. */
static int enqueue_content_digests(const rl_source *source, void *const *buffers, unsigned long long *digests,
                                   cudaStream_t stream, rl_error *err) {
  for (int i = 0; i < source->argument_count; i++) {
    const rl_source_argument *argument = &source->arguments[i];
    if (argument->kind != RL_SOURCE_BUFFER || argument->access != RL_SOURCE_IN) continue;
    const uint64_t bytes = bytes_of(argument);
    add_digest<<<blocks_for(bytes / 8), BLOCK_THREADS, 0, stream>>>((const unsigned char *)buffers[i], bytes, &digests[i]);
  }
  return rl_cuda_check_launch("checking the inputs", err);
}

static int enqueue_digests(const rl_launch_check *check, launch_record *record, cudaStream_t stream, rl_error *err) {
  guard_zones zones = {};
  if (enqueue_content_digests(check->source, check->buffers, record->contents, stream, err) < 0) return -1;
  for (int i = 0; i < check->source->argument_count; i++) {
    const rl_source_argument *argument = &check->source->arguments[i];
    if (argument->kind != RL_SOURCE_BUFFER) continue;
    zones.buffers[i] = (const unsigned char *)check->buffers[i];
    zones.bytes[i] = bytes_of(argument);
  }
  if (check->source->argument_count > 0)
    add_guard_digests<<<(unsigned)check->source->argument_count, BLOCK_THREADS, 0, stream>>>(zones, record->guards);
  return rl_cuda_check_launch("checking the buffers", err);
}

/* --- the expected contents --------------------------------------------------------------------------------------------- */

/* The unsigned integer type of this size. */
template <int BYTES> struct word;
template <> struct word<1> { typedef uint8_t type; };
template <> struct word<2> { typedef uint16_t type; };
template <> struct word<4> { typedef uint32_t type; };
template <> struct word<8> { typedef uint64_t type; };

/* Returns the mask of element i: the masked contents are the element's bits XOR the mask. */
template <typename T> __device__ static typename word<sizeof(T)>::type mask_of(uint64_t key, uint64_t i) {
  return (typename word<sizeof(T)>::type)rl_hash64(key + i);
}

template <typename T> __device__ static double to_double(T value) { return (double)value; }
template <> __device__ double to_double(__half value) { return (double)__half2float(value); }
template <> __device__ double to_double(__nv_bfloat16 value) { return (double)__bfloat162float(value); }

template <typename T> __global__ static void mask(T *contents, uint64_t count, uint64_t key) {
  auto *words = (typename word<sizeof(T)>::type *)contents;
  for (uint64_t i = (uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * BLOCK_THREADS)
    words[i] ^= mask_of<T>(key, i);
}

template <typename T> __global__ static void add_squared_norm(const T *contents, uint64_t count, launch_record *record) {
  double sum = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * BLOCK_THREADS)
    sum += to_double(contents[i]) * to_double(contents[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(&record->squared_norm, sum);
}

/* Returns the largest accepted sum of squared errors. */
__host__ __device__ static double squared_error_limit(double tolerance, double squared_norm) {
  return tolerance * tolerance * (squared_norm > 0 ? squared_norm : 1);
}

/* Adds the squared errors of all elements to the record, and finds the first wrong element: one whose squared error exceeds its
 * share of the limit. squared_norm: sum of the squared elements of the expected contents; negative: it is in the record. */
template <typename T> __global__ static void compare(const T *result, const T *masked, uint64_t count, uint64_t key,
                                                     double tolerance, double squared_norm, launch_record *record) {
  const double element_limit =
      squared_error_limit(tolerance, squared_norm < 0 ? record->squared_norm : squared_norm) / (double)count;
  const auto *masked_words = (const typename word<sizeof(T)>::type *)masked;
  double squared_error = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * BLOCK_THREADS) {
    const typename word<sizeof(T)>::type bits = masked_words[i] ^ mask_of<T>(key, i);
    T expected;
    memcpy(&expected, &bits, sizeof expected);
    const double difference = to_double(result[i]) - to_double(expected);
    squared_error += difference * difference;
    if (!(difference * difference <= element_limit)) atomicMax(&record->first_wrong_inverse, ~(unsigned long long)i);
  }
  squared_error = block_sum(squared_error);
  if (threadIdx.x == 0) atomicAdd(&record->squared_error, squared_error);
}

/* The functions of one element type. */
typedef struct type_functions {
  void (*mask)(void *contents, uint64_t count, uint64_t key, cudaStream_t stream);
  void (*add_squared_norm)(const void *contents, uint64_t count, launch_record *record, cudaStream_t stream);
  void (*compare)(const rl_launch_check *check, const void *result, const void *masked, uint64_t count, double squared_norm,
                  launch_record *record, cudaStream_t stream);
} type_functions;

template <typename T> static void enqueue_mask(void *contents, uint64_t count, uint64_t key, cudaStream_t stream) {
  mask<T><<<blocks_for(count), BLOCK_THREADS, 0, stream>>>((T *)contents, count, key);
}

template <typename T>
static void enqueue_squared_norm(const void *contents, uint64_t count, launch_record *record, cudaStream_t stream) {
  add_squared_norm<T><<<blocks_for(count), BLOCK_THREADS, 0, stream>>>((const T *)contents, count, record);
}

template <typename T> static void enqueue_compare(const rl_launch_check *check, const void *result, const void *masked,
                                                  uint64_t count, double squared_norm, launch_record *record,
                                                  cudaStream_t stream) {
  compare<T><<<blocks_for(count), BLOCK_THREADS, 0, stream>>>((const T *)result, (const T *)masked, count, check->key,
                                                              check->source->tolerance, squared_norm, record);
}

#define FUNCTIONS_FOR(T) \
  { enqueue_mask<T>, enqueue_squared_norm<T>, enqueue_compare<T> }
static const type_functions functions[RL_SOURCE_TYPE_COUNT] = {
    FUNCTIONS_FOR(double),  FUNCTIONS_FOR(float),    FUNCTIONS_FOR(__half),  FUNCTIONS_FOR(__nv_bfloat16),
    FUNCTIONS_FOR(int8_t),  FUNCTIONS_FOR(uint8_t),  FUNCTIONS_FOR(int16_t), FUNCTIONS_FOR(uint16_t),
    FUNCTIONS_FOR(int32_t), FUNCTIONS_FOR(uint32_t), FUNCTIONS_FOR(int64_t), FUNCTIONS_FOR(uint64_t)};

static double squared_norm(const rl_source *source) {
  const rl_source_argument *argument = &source->arguments[source->expected_argument];
  double sum = 0;
  for (int64_t i = 0; i < argument->count; i++) {
    double value = rl_source_element_to_double(argument->type, source->expected, (size_t)i);
    sum += value * value;
  }
  return sum;
}

static int upload_expected(rl_launch_check *check, cudaStream_t stream, rl_error *err) {
  const rl_source_argument *argument = &check->source->arguments[check->source->expected_argument];
  check->squared_norm = squared_norm(check->source);
  if (rl_cuda_check(cudaMalloc(&check->masked_expected, bytes_of(argument)), "allocating the expected contents", err) < 0 ||
      rl_cuda_check(
          cudaMemcpyAsync(check->masked_expected, check->source->expected, bytes_of(argument), cudaMemcpyHostToDevice, stream),
          "copying the expected contents", err) < 0)
    return -1;
  functions[argument->type].mask(check->masked_expected, (uint64_t)argument->count, check->key, stream);
  return rl_cuda_check_launch("masking the expected contents", err);
}

static int enqueue_comparison(const rl_launch_check *check, launch_record *record, cudaStream_t stream, rl_error *err) {
  if (check->masked_expected == NULL) return 0;
  const int index = check->source->expected_argument;
  const rl_source_argument *argument = &check->source->arguments[index];
  functions[argument->type].compare(check, check->buffers[index], check->masked_expected, (uint64_t)argument->count,
                                    check->squared_norm, record, stream);
  return rl_cuda_check_launch("comparing the result", err);
}

/* --- the records ------------------------------------------------------------------------------------------------------- */

/* Returns the sum of the squared elements of the expected contents. */
static double expected_squared_norm(const rl_launch_check *check, const launch_record *record) {
  return check->source->has_reference ? record->squared_norm : check->squared_norm;
}

/* Returns the digests that the contents of buffers with access "in" must have. */
static const unsigned long long *input_digests(const rl_launch_check *check, const launch_record *record) {
  return check->source->has_reference ? record->reference_contents : check->before.contents;
}

/* Fills err with the fault of a wrong launch, and returns -1. Launches are numbered from 1 within the samples of one mode (cold
 * or warm cache); the warm-up launches before the samples count too. */
static int fail_launch(const rl_launch_check *check, uint32_t launch, const launch_record *record, rl_error *err) {
  const rl_source *source = check->source;
  for (int i = 0; i < source->argument_count; i++) {
    if (record->guards[i] != check->before.guards[i])
      return rl_fail(err, RL_ERRNO, EDOM, "result_changed: launch %u of %u wrote outside of the buffer of argument %d",
                     launch + 1, check->count, i);
    if (record->contents[i] != input_digests(check, record)[i])
      return rl_fail(err, RL_ERRNO, EDOM, "result_changed: launch %u of %u wrote to argument %d, whose access is \"in\"",
                     launch + 1, check->count, i);
  }
  const double squared_norm = expected_squared_norm(check, record), norm = squared_norm > 0 ? squared_norm : 1;
  return rl_fail(err, RL_ERRNO, EDOM,
                 "result_changed: launch %u of %u has the relative error %.3g, more than %.3g; the first wrong element is %llu",
                 launch + 1, check->count, sqrt(record->squared_error / norm), source->tolerance, ~record->first_wrong_inverse);
}

static bool is_correct(const rl_launch_check *check, const launch_record *record) {
  return record->squared_error <= squared_error_limit(check->source->tolerance, expected_squared_norm(check, record)) &&
         memcmp(record->contents, input_digests(check, record), sizeof record->contents) == 0 &&
         memcmp(record->guards, check->before.guards, sizeof record->guards) == 0;
}

static int check_records(const rl_launch_check *check, const launch_record *records, rl_error *err) {
  for (uint32_t i = 0; i < check->count; i++)
    if (!is_correct(check, &records[i])) return fail_launch(check, i, &records[i], err);
  return 0;
}

static int clear_records(rl_launch_check *check, cudaStream_t stream, rl_error *err) {
  check->count = 0;
  return rl_cuda_check(cudaMemsetAsync(check->records, 0, MAX_LAUNCHES * sizeof *check->records, stream), "clearing the records",
                       err);
}

int rl_launch_check_enqueue(rl_launch_check *check, rl_stream stream, rl_error *err) {
  if (check->count == MAX_LAUNCHES) return rl_fail(err, RL_ERRNO, EOVERFLOW, "more than %d launches to check", MAX_LAUNCHES);
  launch_record *record = &check->records[check->count++];
  return enqueue_digests(check, record, (cudaStream_t)stream, err) < 0 ||
                 enqueue_comparison(check, record, (cudaStream_t)stream, err) < 0
             ? -1
             : 0;
}

int rl_launch_check_enqueue_inputs(rl_launch_check *check, void *const *reference_buffers, rl_stream stream, rl_error *err) {
  return enqueue_content_digests(check->source, reference_buffers, check->records[check->count - 1].reference_contents,
                                 (cudaStream_t)stream, err);
}

int rl_launch_check_enqueue_result(rl_launch_check *check, void *const *reference_buffers, rl_stream stream, rl_error *err) {
  const int index = (int)check->source->expected_argument;
  const rl_source_argument *argument = &check->source->arguments[index];
  const uint64_t count = (uint64_t)argument->count;
  launch_record *record = &check->records[check->count - 1];
  functions[argument->type].add_squared_norm(reference_buffers[index], count, record, (cudaStream_t)stream);
  functions[argument->type].mask(reference_buffers[index], count, check->key, (cudaStream_t)stream);
  functions[argument->type].compare(check, check->buffers[index], reference_buffers[index], count, -1, record,
                                    (cudaStream_t)stream);
  return rl_cuda_check_launch("comparing the result with the reference's", err);
}

static int copy_records(const rl_launch_check *check, launch_record *to, size_t count, cudaStream_t stream, rl_error *err) {
  if (rl_cuda_check(cudaMemcpyAsync(to, check->records, count * sizeof *to, cudaMemcpyDeviceToHost, stream),
                    "reading the checks of launches", err) < 0)
    return -1;
  return rl_cuda_check(cudaStreamSynchronize(stream), "checking launches", err);
}

int rl_launch_check_read(rl_launch_check *check, rl_stream stream, uint64_t *count, rl_error *err) {
  *count = check->count;
  if (check->count == 0) return 0;
  launch_record *records = (launch_record *)malloc(check->count * sizeof *records);
  if (!records) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the checks of launches");
  int rc = copy_records(check, records, check->count, (cudaStream_t)stream, err);
  if (rc == 0) rc = check_records(check, records, err);
  free(records);
  return clear_records(check, (cudaStream_t)stream, rc < 0 ? NULL : err) < 0 ? -1 : rc;
}

/* --- open and close ---------------------------------------------------------------------------------------------------- */

static int fill_guards(const rl_launch_check *check, cudaStream_t stream, rl_error *err) {
  for (int i = 0; i < check->source->argument_count; i++) {
    char *buffer = (char *)check->buffers[i];
    if (!buffer) continue;
    char *end = buffer + bytes_of(&check->source->arguments[i]);
    if (rl_cuda_check(cudaMemsetAsync(buffer - RL_SOURCE_GUARD_BYTES, GUARD_PATTERN, RL_SOURCE_GUARD_BYTES, stream),
                      "filling a guard zone", err) < 0 ||
        rl_cuda_check(cudaMemsetAsync(end, GUARD_PATTERN, RL_SOURCE_GUARD_BYTES, stream), "filling a guard zone", err) < 0)
      return -1;
  }
  return 0;
}

static int open_on_device(rl_launch_check *check, cudaStream_t stream, rl_error *err) {
  if (rl_cuda_check(cudaMalloc((void **)&check->records, MAX_LAUNCHES * sizeof *check->records),
                    "allocating the checks of launches", err) < 0 ||
      fill_guards(check, stream, err) < 0 || (check->source->expected && upload_expected(check, stream, err) < 0) ||
      clear_records(check, stream, err) < 0 || enqueue_digests(check, check->records, stream, err) < 0 ||
      copy_records(check, &check->before, 1, stream, err) < 0)
    return -1;
  return clear_records(check, stream, err);
}

int rl_launch_check_open(const rl_source *source, void *const *buffers, rl_stream stream, rl_launch_check **check,
                         rl_error *err) {
  rl_launch_check *created = (rl_launch_check *)calloc(1, sizeof *created);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the check of launches");
  created->source = source;
  randombytes_buf(&created->key, sizeof created->key);
  created->buffers = buffers;
  if (open_on_device(created, (cudaStream_t)stream, err) < 0) {
    (void)cudaGetLastError();
    rl_launch_check_close(created);
    return -1;
  }
  *check = created;
  return 0;
}

void rl_launch_check_close(rl_launch_check *check) {
  if (!check) return;
  cudaFree(check->records);
  cudaFree(check->masked_expected);
  free(check);
}
