/* Implements l2_priority.h. */
#include "source/l2_priority.h"

#include "cuda_check.h"

enum { LINE_BYTES = 128, BLOCK_THREADS = 256, MAX_BLOCKS = 1024 };

__global__ static void reset_priority(const char *memory, uint64_t lines) {
#if __CUDA_ARCH__ >= 800
  for (uint64_t i = (uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < lines; i += (uint64_t)gridDim.x * BLOCK_THREADS)
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(memory + i * LINE_BYTES) : "memory");
#endif
}

int rl_source_reset_l2_priority(const rl_source *source, void *const *buffers, rl_stream stream, rl_error *err) {
  for (int i = 0; i < source->argument_count; i++) {
    const rl_source_argument *argument = &source->arguments[i];
    if (argument->kind != RL_SOURCE_BUFFER) continue;
    const uint64_t bytes = (uint64_t)argument->count * rl_source_type_size(argument->type),
                   lines = (bytes + LINE_BYTES - 1) / LINE_BYTES, blocks = (lines + BLOCK_THREADS - 1) / BLOCK_THREADS;
    reset_priority<<<(unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), BLOCK_THREADS, 0, (cudaStream_t)stream>>>(
        (const char *)buffers[i], lines);
  }
  return rl_cuda_check_launch("resetting the priority of L2 lines", err);
}
