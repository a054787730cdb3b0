/* Programs made ready, and their run. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/cuda.h"
#include "device/launches.h"
#include "device/ranges.h"

enum { UNROLL = 64 }; /* repeats of a sequence in one graph: what a graph launch costs is shared by so many */

/* --- plans ------------------------------------------------------------------------------------------------------------- */

struct rl_plan {
  const rl_program *program;
  rl_cuda_piece *pieces; /* two a sequence: the unrolled ones, and what is left */
  size_t count;
  uint64_t repeats, launches;
};

void rl_cuda_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  if (!plan) return;
  for (size_t i = 0; i < plan->count; i++)
    if (plan->pieces[i].graph) cudaGraphExecDestroy(plan->pieces[i].graph);
  free(plan->pieces);
  free(plan);
}

int rl_cuda_plan(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err) {
  rl_plan *made = (rl_plan *)calloc(1, sizeof *made);
  if (made) made->pieces = (rl_cuda_piece *)calloc(2 * program->sequence_count + 1, sizeof *made->pieces);
  if (!made || !made->pieces) {
    rl_cuda_plan_free(device, made);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a plan");
  }
  made->program = program;
  for (size_t i = 0; i < program->sequence_count; i++) {
    const rl_sequence *sequence = &program->sequences[i];
    rl_cuda_piece *pair = &made->pieces[made->count];
    made->count += 2;
    made->repeats += sequence->repeat;
    if (rl_cuda_make_piece(device, sequence, UNROLL, sequence->repeat / UNROLL, &pair[0], err) ||
        rl_cuda_make_piece(device, sequence, sequence->repeat % UNROLL, 1, &pair[1], err)) {
      rl_cuda_plan_free(device, made);
      return -1;
    }
    made->launches += pair[0].nodes * pair[0].times + pair[1].nodes * pair[1].times;
  }
  if (rl_cuda_wait(device, "uploading graphs", err)) {
    rl_cuda_plan_free(device, made);
    return -1;
  }
  *plan = made;
  return 0;
}

/* --- running ----------------------------------------------------------------------------------------------------------- */

typedef struct progress { /* what was queued and what the host knows to be done */
  const rl_observer *observer;
  uint64_t queued, done_after[RL_CUDA_AHEAD], repeats, of;
} progress;

/* Before the next launch is queued: wait for the one RL_CUDA_AHEAD of it. */
static int keep_pace(rl_device *device, progress *p, rl_error *err) {
  size_t slot = p->queued % RL_CUDA_AHEAD;
  if (p->queued >= RL_CUDA_AHEAD) {
    if (rl_cuda_ok(cudaEventSynchronize(rl_cuda_own(device)->ring[slot]), "running", err)) return -1;
    if (p->observer && p->observer->progress) p->observer->progress(p->observer->context, p->done_after[slot], p->of);
  }
  return rl_observer_cancelled(p->observer, err);
}

static int mark(rl_device *device, progress *p, uint64_t repeats, rl_error *err) {
  size_t slot = p->queued++ % RL_CUDA_AHEAD;
  p->done_after[slot] = p->repeats += repeats;
  return rl_cuda_ok(cudaEventRecord(rl_cuda_own(device)->ring[slot], rl_cuda_stream(device)), "running", err);
}

static int launch_pieces(rl_device *device, const rl_plan *plan, progress *p, rl_error *err) {
  for (size_t i = 0; i < plan->count; i++)
    for (uint64_t time = 0; time < plan->pieces[i].times; time++)
      if (keep_pace(device, p, err) ||
          rl_cuda_ok(cudaGraphLaunch(plan->pieces[i].graph, rl_cuda_stream(device)), "launching a graph", err) ||
          mark(device, p, plan->pieces[i].copies, err))
        return -1;
  return 0;
}

/* Times whatever body queues, until the device is idle. */
static int timed(rl_device *device, const char *name,
                 int (*body)(rl_device *device, const void *what, progress *p, rl_error *err), const void *what, progress *p,
                 rl_elapsed *elapsed, rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_own(device);
  rl_error unwound;
  float ms = 0;
  rl_range_push(name);
  int64_t begin = rl_monotonic_ns();
  int rc = rl_cuda_ok(cudaEventRecord(cuda->start, rl_cuda_stream(device)), "timing", err) || body(device, what, p, err) ||
           rl_cuda_ok(cudaEventRecord(cuda->stop, rl_cuda_stream(device)), "timing", err);
  rc = rl_cuda_wait(device, "running", rc ? &unwound : err) || rc; /* also after a cancellation: the device is idle on return */
  int64_t end = rl_monotonic_ns();
  rl_range_pop();
  if (rc || rl_cuda_ok(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "timing", err)) return -1;
  elapsed->device_ms = ms;
  elapsed->host_ms = (double)(end - begin) * 1e-6;
  if (p->observer && p->observer->progress) p->observer->progress(p->observer->context, p->of, p->of);
  return 0;
}

static int run_plan(rl_device *device, const void *what, progress *p, rl_error *err) {
  return launch_pieces(device, (const rl_plan *)what, p, err);
}

int rl_cuda_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  progress p = {observer, 0, {}, 0, plan->repeats};
  rl_elapsed took = {0, 0, plan->launches};
  if (timed(device, plan->program->name, run_plan, plan, &p, &took, err)) return -1;
  *elapsed = took;
  return 0;
}

static int run_sequences(rl_device *device, const void *what, progress *p, rl_error *err) {
  const rl_program *program = (const rl_program *)what;
  for (size_t i = 0; i < program->sequence_count; i++)
    for (uint64_t repeat = 0; repeat < program->sequences[i].repeat; repeat++)
      if (keep_pace(device, p, err) || rl_sequence_once(&program->sequences[i], device->stream, NULL, err) ||
          mark(device, p, 1, err))
        return -1;
  return 0;
}

int rl_cuda_run_eager(rl_device *device, const rl_program *program, const rl_observer *observer, rl_elapsed *elapsed,
                      rl_error *err) {
  progress p = {observer};
  rl_elapsed took = {};
  for (size_t i = 0; i < program->sequence_count; i++) { /* what one repeat issues is known by capturing it */
    const rl_sequence *sequence = &program->sequences[i];
    uint64_t work = 0;
    p.of += sequence->repeat;
    if (sequence->repeat == 0) continue;
    if (rl_cuda_count_work(device, sequence, &work, err)) return -1;
    took.launches += work * sequence->repeat;
  }
  if (timed(device, program->name, run_sequences, program, &p, &took, err)) return -1;
  *elapsed = took;
  return 0;
}
