/* Runs the kernels of tests/attacks on the CPU. The check of launches must find each wrong launch, and accept those of honest
 * kernels. On a GPU, the variables of a module are restored before each launch, so a kernel that keeps results in them gains
 * nothing. Here they are not restored: such a kernel returns old results, which the check must find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "cuda_check.h"
#include "source/fill.h"
#include "source/launch_check.h"

enum { ELEMENTS = 1003, LAUNCHES = 30, BLOCK_THREADS = 256 };

static void check(bool condition, const char *what, const char *detail) {
  if (condition) return;
  printf("failed: %s %s\n", what, detail);
  exit(1);
}

/* The arguments of an attack: input, result, number of elements, scratch space. The input and the result have guard zones. */
struct attack_arguments {
  rl_source source;
  void *allocations[RL_SOURCE_ARGUMENTS_MAX], *buffers[RL_SOURCE_ARGUMENTS_MAX], *saved[RL_SOURCE_ARGUMENTS_MAX],
      *reference[RL_SOURCE_ARGUMENTS_MAX];
};

static size_t bytes_of(const rl_source_argument *argument) {
  return (size_t)argument->count * rl_source_type_size(argument->type);
}

static void *allocate(size_t bytes) {
  void *memory = NULL;
  check(cudaMalloc(&memory, bytes) == cudaSuccess, "cudaMalloc", "");
  return memory;
}

static rl_source_argument buffer(int type, int64_t count, int init, int access) {
  rl_source_argument argument = {};
  argument.type = type, argument.count = count, argument.init = init, argument.access = access, argument.seed = 1;
  return argument;
}

static void fill(attack_arguments *arguments, uint64_t launch, void *const *buffers) {
  rl_error err = {};
  check(rl_source_fill_buffers(&arguments->source, launch, arguments->saved, buffers, NULL, &err) == 0, "filling", err.message);
}

static void open_arguments(attack_arguments *arguments, bool is_random) {
  rl_source *source = &arguments->source;
  rl_error err = {};
  memset(arguments, 0, sizeof *arguments);
  source->argument_count = 4;
  source->arguments[0] = buffer(RL_SOURCE_FP32, ELEMENTS, is_random ? RL_SOURCE_UNIFORM : RL_SOURCE_RANGE, RL_SOURCE_IN);
  source->arguments[1] = buffer(RL_SOURCE_FP32, ELEMENTS, RL_SOURCE_ZEROS, RL_SOURCE_OUT);
  source->arguments[2].kind = RL_SOURCE_SCALAR;
  source->arguments[3] = buffer(RL_SOURCE_FP32, 1, RL_SOURCE_ZEROS, RL_SOURCE_INOUT);
  source->expected_argument = 1;
  source->tolerance = 1e-6;
  source->has_reference = is_random;
  for (int i = 0; i < source->argument_count; i++) {
    const rl_source_argument *argument = &source->arguments[i];
    if (argument->kind != RL_SOURCE_BUFFER) continue;
    arguments->allocations[i] = allocate(bytes_of(argument) + 2 * RL_SOURCE_GUARD_BYTES);
    arguments->buffers[i] = (char *)arguments->allocations[i] + RL_SOURCE_GUARD_BYTES;
    arguments->saved[i] = allocate(bytes_of(argument));
    arguments->reference[i] = allocate(bytes_of(argument));
    if (argument->access != RL_SOURCE_OUT)
      check(rl_source_fill(argument, i, 0, arguments->saved[i], NULL, &err) == 0, "filling", err.message);
  }
  fill(arguments, 0, arguments->buffers);
  if (is_random) return;
  source->expected = (unsigned char *)malloc(ELEMENTS * sizeof(float));
  for (int i = 0; i < ELEMENTS; i++) ((float *)source->expected)[i] = 2.0f * (float)i;
}

static void close_arguments(attack_arguments *arguments) {
  for (int i = 0; i < arguments->source.argument_count; i++) {
    cudaFree(arguments->allocations[i]);
    cudaFree(arguments->saved[i]);
    cudaFree(arguments->reference[i]);
  }
  free(arguments->source.expected);
}

typedef void launch_function(float *x, float *y, int n, void *scratch);
#define LAUNCH(NAME, KERNEL, ...)                                                           \
  static void NAME(float *x, float *y, int n, void *scratch) {                              \
    KERNEL<<<(ELEMENTS + BLOCK_THREADS - 1) / BLOCK_THREADS, BLOCK_THREADS>>>(__VA_ARGS__); \
  }
/* Declares attack_NAME, which a file of tests/attacks defines with these parameters, and defines launch_NAME, which launches it
 * with the arguments. */
#define ATTACK(NAME, PARAMETERS, ...)                  \
  extern "C" __global__ void attack_##NAME PARAMETERS; \
  LAUNCH(launch_##NAME, attack_##NAME, __VA_ARGS__)
ATTACK(before_the_buffer, (const float *x, float *y, int n), x, y, n)
ATTACK(behind_the_buffer, (const float *x, float *y, int n), x, y, n)
ATTACK(cached_answer, (const float *x, float *y, int n), x, y, n)
ATTACK(counted_launches, (const float *x, float *y, int n), x, y, n)
ATTACK(every_seventh, (const float *x, float *y, int n), x, y, n)
ATTACK(finds_expected, (const float *x, float *y, int n), x, y, n)
ATTACK(half_the_work, (const float *x, float *y, int n), x, y, n)
ATTACK(honest_rounding, (const float *x, float *y, int n), x, y, n)
ATTACK(just_wrong, (const float *x, float *y, int n), x, y, n)
ATTACK(knows_the_seed, (const float *x, float *y, int n), x, y, n)
ATTACK(nan_output, (const float *x, float *y, int n), x, y, n)
ATTACK(one_past_the_end, (const float *x, float *y, int n), x, y, n)
ATTACK(shared_residue, (const float *x, float *y, int n), x, y, n)
ATTACK(stale_output, (const float *x, float *y, int n), x, y, n)
ATTACK(trusts_output, (const float *x, float *y, int n), x, y, n)
ATTACK(writes_input, (float *x, float *y, int n), x, y, n)
ATTACK(writes_input_late, (float *x, float *y, int n), x, y, n)
ATTACK(late_zeros, (const float *x, float *y, int n, int *launches), x, y, n, (int *)scratch)
ATTACK(honest_atomics, (const float *x, float *y, int n, float *sum), x, y, n, (float *)scratch)

__global__ void honest(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

LAUNCH(launch_honest, honest, x, y, n)

/* words: part of the error's message; NULL: every launch is correct. is_random: the inputs are random, and honest() is the
 * reference. */
static const struct attack {
  const char *name;
  launch_function *launch;
  const char *words;
  bool is_random;
} attacks[] = {
    {"honest", launch_honest, NULL, false},
    {"honest, random inputs", launch_honest, NULL, true},
    {"honest_atomics", launch_honest_atomics, NULL, false},
    {"honest_rounding", launch_honest_rounding, NULL, false},
    {"honest_rounding, random inputs", launch_honest_rounding, NULL, true},
    {"stale_output", launch_stale_output, NULL, false},
    {"shared_residue", launch_shared_residue, NULL, false},
    {"late_zeros", launch_late_zeros, NULL, false},
    {"just_wrong", launch_just_wrong, "relative error", false},
    {"just_wrong, random inputs", launch_just_wrong, "relative error", true},
    {"cached_answer", launch_cached_answer, "relative error", false},
    {"counted_launches", launch_counted_launches, "has the relative error", false},
    {"every_seventh", launch_every_seventh, "the first wrong element is 5", false},
    {"finds_expected", launch_finds_expected, "relative error", false},
    {"half_the_work", launch_half_the_work, "relative error", false},
    {"knows_the_seed", launch_knows_the_seed, "launch 1 of 30 has the relative error", true},
    {"nan_output", launch_nan_output, "relative error", false},
    {"nan_output, random inputs", launch_nan_output, "relative error", true},
    {"trusts_output", launch_trusts_output, "launch 1 of 30 has the relative error", false},
    {"writes_input", launch_writes_input, "wrote to argument 0, whose access is", false},
    {"writes_input, random inputs", launch_writes_input, "wrote to argument 0, whose access is", true},
    {"writes_input_late", launch_writes_input_late, "wrote to argument 0, whose access is", false},
    {"before_the_buffer", launch_before_the_buffer, "wrote outside of the buffer of argument 1", false},
    {"behind_the_buffer", launch_behind_the_buffer, "wrote outside of the buffer of argument 1", false},
    {"one_past_the_end", launch_one_past_the_end, "wrote outside of the buffer of argument 1", false},
};

/* Runs the reference on the same inputs as launch number `launch`, and enqueues the comparison. */
static void check_with_reference(attack_arguments *arguments, rl_launch_check *launch_check, uint64_t launch) {
  rl_error err = {};
  void *const *buffers = arguments->reference;
  fill(arguments, launch, buffers);
  check(rl_launch_check_enqueue_inputs(launch_check, buffers, NULL, &err) == 0, "checking the inputs", err.message);
  launch_honest((float *)buffers[0], (float *)buffers[1], ELEMENTS, NULL);
  check(rl_launch_check_enqueue_result(launch_check, buffers, NULL, &err) == 0, "checking the result", err.message);
}

static void run(const attack &attack) {
  attack_arguments arguments;
  rl_launch_check *launch_check = NULL;
  rl_error err = {};
  uint64_t count = 0;
  open_arguments(&arguments, attack.is_random);
  check(rl_launch_check_open(&arguments.source, arguments.buffers, NULL, &launch_check, &err) == 0, "opening", err.message);
  for (int i = 1; i <= LAUNCHES; i++) {
    const uint64_t launch = attack.is_random ? (uint64_t)i : 0;
    fill(&arguments, launch, arguments.buffers);
    attack.launch((float *)arguments.buffers[0], (float *)arguments.buffers[1], ELEMENTS, arguments.buffers[3]);
    check(rl_launch_check_enqueue(launch_check, NULL, &err) == 0, "checking", err.message);
    if (attack.is_random) check_with_reference(&arguments, launch_check, launch);
  }
  const int rc = rl_launch_check_read(launch_check, NULL, &count, &err);
  check(count == LAUNCHES, "not every launch was checked:", attack.name);
  check((rc == 0) == (attack.words == NULL), attack.name, rc == 0 ? "was accepted" : err.message);
  check(rc == 0 || (err.code == EDOM && strstr(err.message, attack.words) != NULL), attack.name, err.message);
  rl_launch_check_close(launch_check);
  close_arguments(&arguments);
}

int main() {
  for (const attack &attack : attacks) run(attack);
  printf("%zu attacks and honest kernels have their verdicts\n", sizeof attacks / sizeof *attacks);
  return 0;
}
