/* The fused engine of the CPU: both convolutions of an image one after the other while it lies in the caches, in both directions.
 *
 * Forward keeps what backward needs and nothing else: no im2col, no outputs before pooling. Backward multiplies for the winners
 * of the pools alone (direct.c), and the gradient of conv1's output lives only as long as its image. The linear layers,
 * chunk_sums and Adam are layers.c's. conv2 lies as [out][tap][in], with a copy in the order that forward reads. */
#include <string.h>

#include "train/direct.h"
#include "train/layers.h"

typedef struct scratch { /* of one thread */
  float p1[RL_P1_FLOATS], dp1[RL_P1_FLOATS], p2[RL_FLAT], dp2[RL_FLAT];
} scratch;

typedef struct fused {
  rl_layers layers;
  const rl_direct *direct;
  const float *conv2;    /* the weights that layers see, as floats */
  float *rounded, *taps; /* fp16: room for these; and in the order in which forward reads them */
  scratch *scratch;      /* [threads] */
} fused;

static void forward_chunk(rl_layers *l, rl_batch_chunk chunk, uint32_t thread) {
  fused *f = (fused *)l;
  scratch *own = &f->scratch[thread];
  float spare[9 * RL_C1 + RL_C1], spare2[RL_C2];
  const float *conv1 = rl_weights(l, rl_offset(RL_CONV1_W), 9 * RL_C1 + RL_C1, spare);
  const float *bias2 = rl_weights(l, rl_offset(RL_CONV2_B), RL_C2, spare2);
  for (size_t i = chunk.first; i < chunk.end; i++) {
    float *p1 = rl_compute_buffer(l, l->p1, i * RL_P1_FLOATS, own->p1), *p2 = rl_compute_buffer(l, l->p2, i * RL_FLAT, own->p2);
    l->simd->conv1_forward(l->train.x + i * RL_PIXELS, conv1, conv1 + 9 * RL_C1, p1, l->argmax1 + i * RL_P1_FLOATS);
    rl_pack(l, l->p1, i * RL_P1_FLOATS, RL_P1_FLOATS, p1);
    f->direct->forward(rl_unpack(l, l->p1, i * RL_P1_FLOATS, RL_P1_FLOATS, own->p1), f->taps, bias2, p2,
                       l->argmax2 + i * RL_FLAT);
    rl_pack(l, l->p2, i * RL_FLAT, RL_FLAT, p2);
  }
}

static void backward_chunk(rl_layers *l, rl_batch_chunk chunk, uint32_t thread) {
  fused *f = (fused *)l;
  scratch *own = &f->scratch[thread];
  float *sums = chunk.sums;
  memset(sums, 0, sizeof(float) * RL_CONV_GRADIENTS);
  for (size_t i = chunk.first; i < chunk.end; i++) {
    const float *p1 = rl_unpack(l, l->p1, i * RL_P1_FLOATS, RL_P1_FLOATS, own->p1),
                *dp2 = rl_unpack(l, l->dp2, i * RL_FLAT, RL_FLAT, own->dp2);
    const uint8_t *argmax2 = l->argmax2 + i * RL_FLAT;
    f->direct->weight_gradient(p1, dp2, argmax2, sums + rl_offset(RL_CONV2_W), sums + rl_offset(RL_CONV2_B));
    f->direct->input_gradient(dp2, argmax2, f->conv2, own->dp1);
    l->simd->conv1_gradient(l->train.x + i * RL_PIXELS, own->dp1, l->argmax1 + i * RL_P1_FLOATS, sums + rl_offset(RL_CONV1_W),
                            sums + rl_offset(RL_CONV1_B));
  }
}

static void convolutions_forward(rl_cpu_train *train, uint32_t n) { rl_run_batch_chunks((rl_layers *)train, n, forward_chunk); }

static void convolutions_backward(rl_cpu_train *train, uint32_t n) {
  rl_run_batch_chunks((rl_layers *)train, n, backward_chunk);
  rl_sum_batch_chunks((rl_layers *)train);
}

static const rl_cpu_layer forward[] = {
    {"convolutions_forward", convolutions_forward}, {"fc1_forward", rl_fc1_forward}, {"fc2_forward", rl_fc2_forward}, {0}};
static const rl_cpu_layer backward[] = {
    {"fc2_backward", rl_fc2_backward}, {"fc1_backward", rl_fc1_backward}, {"convolutions_backward", convolutions_backward}, {0}};

static uint32_t place(uint32_t parameter) {
  if (parameter < rl_offset(RL_CONV2_W) || parameter >= rl_offset(RL_CONV2_B)) return rl_layers_parameter_index(parameter);
  uint32_t i = parameter - rl_offset(RL_CONV2_W);
  return rl_offset(RL_CONV2_W) + i / RL_CONV2_K * RL_CONV2_K + i % 9 * RL_C1 + i / 9 % RL_C1;
}

static void arrange(fused *f) {
  rl_layers *l = &f->layers;
  f->conv2 = rl_weights(l, rl_offset(RL_CONV2_W), RL_CONV2_K * RL_C2, f->rounded);
  f->direct->arrange(f->conv2, f->taps);
}

static void on_weights_changed(rl_cpu_train *train) {
  rl_layers_on_weights_changed(train);
  arrange((fused *)train);
}

static void adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  rl_layers_adam(train, step, rate, scale);
  arrange((fused *)train);
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  fused *f = (fused *)train;
  const size_t weights = sizeof(float) * RL_CONV2_K * RL_C2, own = sizeof(scratch) * rl_threads_count(train->threads);
  const rl_direct *usable[RL_DIRECT_TABLES] = {NULL};
  rl_direct_usable(usable);
  f->direct = usable[0];
  if (rl_layers_prepare(train, err) != 0 || rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, weights, (void **)&f->taps, err) != 0 ||
      rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, own, (void **)&f->scratch, err) != 0)
    return -1;
  return train->half ? rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, weights, (void **)&f->rounded, err) : 0;
}

static const rl_cpu_math math = {.threaded = true,
                                 .size = sizeof(fused),
                                 .forward = forward,
                                 .backward = backward,
                                 .parameter_index = place,
                                 .prepare = prepare,
                                 .on_start = rl_layers_on_start,
                                 .on_weights_changed = on_weights_changed,
                                 .all_finite = rl_layers_all_finite,
                                 .adam = adam,
                                 .read_value = rl_layers_read_value};

static int device_supports(const void *params, rl_error *err) {
  (void)params;
  const rl_direct *usable[RL_DIRECT_TABLES];
  if (rl_direct_usable(usable) > 0) return 0;
  return rl_fail_at(err, "/engine", "engine fused needs a CPU with AVX2 and FMA; use \"auto\"");
}

static int open_fused(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  if (device_supports(params, err) < 0) return -1;
  return rl_cpu_open(&math, device, params, instance, err);
}

const rl_engine rl_engine_cpu_fused = {
    .description = &rl_train_cpu_fused, .open = open_fused, .device_supports = device_supports};
