/* Implements parallel.h. */
#include "kernel/parallel.h"

#include <stdatomic.h>

typedef struct parallel_loop {
  const rl_device *device;
  int64_t count, chunk_size;
  rl_parallel_function *function;
  void *context;
  atomic_bool failed;
  rl_error err; /* error of the chunk that failed first */
} parallel_loop;

static void run_chunk(void *context, uint32_t chunk, uint32_t thread) {
  parallel_loop *loop = context;
  rl_error err = {0};
  if (atomic_load(&loop->failed)) return;
  const int64_t first = loop->chunk_size * chunk, remaining = loop->count - first;
  /* Only the device's thread, which is thread 0 of the pool, may call the observer. */
  int rc = thread == 0 ? rl_device_check_cancellation(loop->device, &err) : 0;
  if (rc == 0)
    rc = loop->function(loop->context, first, remaining < loop->chunk_size ? remaining : loop->chunk_size, thread, &err);
  if (rc < 0 && !atomic_exchange(&loop->failed, true)) loop->err = err;
}

int rl_parallel_for(rl_thread_pool *thread_pool, const rl_device *device, int64_t count, int64_t chunk_size,
                    rl_parallel_function *function, void *context, rl_error *err) {
  parallel_loop loop = {.device = device, .count = count, .chunk_size = chunk_size, .function = function, .context = context};
  rl_thread_pool_run(thread_pool, (uint32_t)((count + chunk_size - 1) / chunk_size), run_chunk, &loop);
  if (!atomic_load(&loop.failed)) return 0;
  if (err) *err = loop.err;
  return -1;
}
