/* Compares the output of a kernel with its operator's reference in double precision. Compares the whole output if the reference
 * takes at most about MAX_OPERATIONS operations; otherwise a sample of its segments (kernel.h): the first ones, the last ones,
 * and random ones between them.
 *
 * The error ‖result − reference‖ / ‖reference‖ is computed for each block of adjacent elements, and the largest of these errors
 * counts. If it were computed over the whole output, one wrong element would hardly change it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "kernel/input_stager.h"
#include "kernel/parallel.h"

enum {
  BLOCK_ELEMENTS = 1 << 14,   /* approximate number of elements of a block; a block has at least one segment */
  STAGING_ELEMENTS = 1 << 20, /* elements that are downloaded at once; at least one block */
  MAX_RANGES = 64             /* ranges of a sample */
};
static const double MAX_OPERATIONS = 0x1p31;

/* The segments to compare: range_count ranges of range_segments segments each. The output is divided into range_count equal
 * parts, and each part has one range: the first range begins the output, the last one ends it, and the others are at a random
 * position in their part. A range is divided into range_blocks blocks of block_segments segments; the last block may have
 * fewer. */
typedef struct sample {
  int64_t output_segment_count;
  int64_t range_count, range_segments;
  int64_t range_blocks, block_segments;
  uint64_t seed;
} sample;

static sample choose_sample(const rl_kernel_instance *kernel) {
  const rl_kernel_operator *op = kernel->params.op;
  double (*operations)(const rl_kernel_shape *) = op->reference_operations ? op->reference_operations : op->operations;
  const double work = (double)op->output_elements(&kernel->shape) + operations(&kernel->shape);
  sample chosen = {.output_segment_count = op->output_segment_count(&kernel->shape),
                   .range_count = 1,
                   .seed = rl_hash64((uint64_t)kernel->params.seed)};
  chosen.range_segments = chosen.output_segment_count;
  if (work > MAX_OPERATIONS && chosen.output_segment_count > 1) {
    const int64_t affordable_segments = (int64_t)((double)chosen.output_segment_count * MAX_OPERATIONS / work);
    chosen.range_count = affordable_segments < 2 ? 2 : affordable_segments < MAX_RANGES ? affordable_segments : MAX_RANGES;
    chosen.range_segments = affordable_segments < MAX_RANGES ? 1 : affordable_segments / MAX_RANGES;
  }
  chosen.block_segments = rl_kernel_output_segments_for_elements(kernel, BLOCK_ELEMENTS);
  chosen.range_blocks = (chosen.range_segments + chosen.block_segments - 1) / chosen.block_segments;
  return chosen;
}

/* Returns the first segment of a range. */
static int64_t range_start(const sample *chosen, int64_t range) {
  if (range == 0) return 0;
  if (range == chosen->range_count - 1) return chosen->output_segment_count - chosen->range_segments;
  const int64_t low = chosen->output_segment_count * range / chosen->range_count,
                high = chosen->output_segment_count * (range + 1) / chosen->range_count;
  return low + (int64_t)(rl_hash64(chosen->seed + (uint64_t)range) % (uint64_t)(high - low - chosen->range_segments + 1));
}

/* Returns the first segment of a block; blocks are numbered through all ranges. */
static int64_t block_start(const sample *chosen, int64_t block) {
  return range_start(chosen, block / chosen->range_blocks) + block % chosen->range_blocks * chosen->block_segments;
}

static int64_t segments_of_block(const sample *chosen, int64_t block) {
  const int64_t remaining = chosen->range_segments - block % chosen->range_blocks * chosen->block_segments;
  return remaining < chosen->block_segments ? remaining : chosen->block_segments;
}

/* --- comparing --------------------------------------------------------------------------------------------------------- */

typedef struct thread_result {
  double max_error;   /* largest relative error of a block */
  int64_t non_finite; /* elements that are infinite or NaN */
} thread_result;

typedef struct output_comparison {
  rl_kernel_instance *kernel;
  rl_input_stager stager; /* reads the inputs for the reference */
  sample sample;
  double min_magnitude; /* a block whose elements are smaller on average is compared as if they had this magnitude */
  char *staging;        /* downloaded blocks, beginning with block first_block */
  size_t block_bytes, segment_bytes;
  int64_t first_block;
  thread_result *results; /* one for each thread */
} output_comparison;

typedef struct block_comparison {
  const output_comparison *comparison;
  const char *result;   /* downloaded elements of the block */
  int64_t first;        /* first segment of the block */
  double squared_error; /* sum of the squared errors of the block's elements */
  double squared_norm;  /* sum of the squared elements of the reference */
  int64_t non_finite;
} block_comparison;

/* An rl_output_segment_function: adds the errors of segments [first, first + count) to the sums of the block. */
static void compare_segments(void *context, const void *const *in, int64_t first, int64_t count, void *out) {
  block_comparison *block = context;
  const rl_kernel_instance *kernel = block->comparison->kernel;
  const int64_t elements = count * rl_kernel_elements_per_output_segment(kernel);
  const char *result = block->result + (size_t)(first - block->first) * block->comparison->segment_bytes;
  double *expected = out;
  kernel->params.op->reference(&kernel->shape, (const double *const *)in, first, count, expected);
  for (int64_t i = 0; i < elements; i++) {
    double value = rl_dtype_load(kernel->params.dtype, result, (size_t)i), error = value - expected[i];
    block->non_finite += !isfinite(value);
    block->squared_error += error * error;
    block->squared_norm += expected[i] * expected[i];
  }
}

/* Compares downloaded blocks [first, first + count). */
static int compare_blocks(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  output_comparison *comparison = context;
  thread_result *result = &comparison->results[thread];
  for (int64_t i = first; i < first + count; i++) {
    const int64_t block_index = comparison->first_block + i, segments = segments_of_block(&comparison->sample, block_index);
    block_comparison block = {.comparison = comparison,
                              .result = comparison->staging + (size_t)i * comparison->block_bytes,
                              .first = block_start(&comparison->sample, block_index)};
    if (rl_input_stager_process(&comparison->stager, block.first, segments, thread, compare_segments, &block, err) < 0) return -1;
    const double elements = (double)(segments * rl_kernel_elements_per_output_segment(comparison->kernel));
    const double norm = fmax(sqrt(block.squared_norm), comparison->min_magnitude * sqrt(elements));
    result->non_finite += block.non_finite;
    result->max_error = fmax(result->max_error, norm > 0 ? sqrt(block.squared_error) / norm : sqrt(block.squared_error));
  }
  return 0;
}

/* Downloads blocks [first, first + count) into the staging buffer; neighbouring blocks of a range are downloaded in one copy. */
static int download_blocks(output_comparison *comparison, int64_t first, int64_t count, rl_error *err) {
  rl_device *device = comparison->kernel->base.device;
  const sample *chosen = &comparison->sample;
  comparison->first_block = first;
  for (int64_t i = first, end; i < first + count; i = end) {
    end = (i / chosen->range_blocks + 1) * chosen->range_blocks;
    if (end > first + count) end = first + count;
    const int64_t begin_segment = block_start(chosen, i),
                  end_segment = block_start(chosen, end - 1) + segments_of_block(chosen, end - 1);
    char *to = comparison->staging + (size_t)(i - first) * comparison->block_bytes;
    const char *from = (const char *)comparison->kernel->out + (size_t)begin_segment * comparison->segment_bytes;
    if (rl_device_check_cancellation(device, err) < 0 ||
        device->ops->download(device, to, from, (size_t)(end_segment - begin_segment) * comparison->segment_bytes, err) < 0)
      return -1;
  }
  return 0;
}

static int compare_sample(output_comparison *comparison, rl_error *err) {
  const rl_kernel_instance *kernel = comparison->kernel;
  const int64_t blocks = comparison->sample.range_count * comparison->sample.range_blocks;
  const int64_t block_elements = comparison->sample.block_segments * rl_kernel_elements_per_output_segment(kernel);
  int64_t stage_blocks = block_elements < STAGING_ELEMENTS ? STAGING_ELEMENTS / block_elements : 1;
  if (stage_blocks > blocks) stage_blocks = blocks;
  comparison->staging = malloc((size_t)stage_blocks * comparison->block_bytes);
  comparison->results = calloc(rl_thread_pool_thread_count(kernel->thread_pool), sizeof *comparison->results);
  if (comparison->staging == NULL || comparison->results == NULL)
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the check");
  if (rl_input_stager_open(&comparison->stager, err) < 0 || rl_input_stager_read_full_inputs(&comparison->stager, err) < 0)
    return -1;
  for (int64_t first = 0; first < blocks; first += stage_blocks) {
    const int64_t count = blocks - first < stage_blocks ? blocks - first : stage_blocks;
    if (download_blocks(comparison, first, count, err) < 0 ||
        rl_parallel_for(kernel->thread_pool, kernel->base.device, count, 1, compare_blocks, comparison, err) < 0)
      return -1;
  }
  return 0;
}

static int set_check(const output_comparison *comparison, rl_check *check, rl_error *err) {
  const rl_kernel_instance *kernel = comparison->kernel;
  thread_result worst = {0};
  for (uint32_t thread = 0; thread < rl_thread_pool_thread_count(kernel->thread_pool); thread++) {
    worst.non_finite += comparison->results[thread].non_finite;
    worst.max_error = fmax(worst.max_error, comparison->results[thread].max_error);
  }
  if (worst.non_finite > 0)
    return rl_fail(err, RL_ERRNO, EDOM, "%lld elements of the result are infinite or NaN", (long long)worst.non_finite);
  *check = (rl_check){.relative_error = worst.max_error,
                      .tolerance = rl_kernel_tolerance(&kernel->params, &kernel->shape),
                      .checked_ratio = (double)(comparison->sample.range_count * comparison->sample.range_segments) /
                                       (double)comparison->sample.output_segment_count};
  return 0;
}

/* --- the check --------------------------------------------------------------------------------------------------------- */

int rl_kernel_poison(rl_kernel_instance *kernel, rl_error *err) {
  enum { STEP_BYTES = 1 << 26 }; /* between two checks for cancellation */
  rl_device *device = kernel->base.device;
  const size_t bytes = (size_t)kernel->params.op->output_elements(&kernel->shape) * rl_dtype_size(kernel->params.dtype);
  for (size_t start = 0; start < bytes; start += STEP_BYTES) {
    const size_t count = bytes - start < STEP_BYTES ? bytes - start : STEP_BYTES;
    if (rl_device_check_cancellation(device, err) < 0 ||
        device->ops->fill(device, (char *)kernel->out + start, 0xff, count, err) < 0)
      return -1;
  }
  return 0;
}

static int run_once(rl_kernel_instance *kernel, rl_error *err) {
  rl_device *device = kernel->base.device;
  rl_sequence once = kernel->sequence;
  rl_sequence_list sequence_list = {.name = "check", .sequences = &once, .sequence_count = 1};
  rl_elapsed elapsed;
  once.repeat = 1;
  return rl_kernel_poison(kernel, err) < 0 || device->ops->run_eager(device, &sequence_list, NULL, &elapsed, err) < 0 ? -1 : 0;
}

/* Implements rl_input_stager.read_input: generates the inputs again from the seed instead of downloading them. */
static const void *generate_input(const rl_kernel_instance *kernel, uint32_t input, int64_t start, int64_t count, void *buffer) {
  enum { CHUNK = 1024 };
  double rounded[CHUNK]; /* elements of the kernel's type, which has at most 8 bytes */
  for (int64_t done = 0; done < count; done += CHUNK) {
    const int64_t chunk = count - done < CHUNK ? count - done : CHUNK;
    rl_kernel_fill_input(&kernel->params, &kernel->shape, input, start + done, chunk, rounded);
    rl_dtype_to_double(kernel->params.dtype, rounded, chunk, (double *)buffer + done);
  }
  return buffer;
}

int rl_kernel_check(rl_instance *instance, rl_check *check, rl_error *err) {
  rl_kernel_instance *kernel = (rl_kernel_instance *)instance;
  const rl_kernel_operator *op = kernel->params.op;
  const double scale = op->output_scale ? op->output_scale(&kernel->shape) : 0;
  output_comparison comparison = {.kernel = kernel,
                                  .sample = choose_sample(kernel),
                                  .min_magnitude = fmax(scale, rl_dtype_smallest_normal(kernel->params.dtype)),
                                  .stager = {.kernel = kernel,
                                             .value_bytes = sizeof(double),
                                             .max_buffer_values = 4 * BLOCK_ELEMENTS,
                                             .read_input = generate_input}};
  comparison.segment_bytes = (size_t)rl_kernel_elements_per_output_segment(kernel) * rl_dtype_size(kernel->params.dtype);
  comparison.block_bytes = (size_t)comparison.sample.block_segments * comparison.segment_bytes;
  bool failed = run_once(kernel, err) < 0 || compare_sample(&comparison, err) < 0 || set_check(&comparison, check, err) < 0;
  rl_input_stager_close(&comparison.stager);
  free(comparison.staging);
  free(comparison.results);
  return failed ? -1 : 0;
}
