/* Engine "persistent" stamps its phases: every block, in order, within the launch, and it computes the same as without, watched
 * or not.
 * Arguments: a batch of at most 64, how many steps, and how many images the last of them has; without: 64, more than are
 * stamped, 5. */
#include "fixture.h"

enum { STAMPED = 32 };
static rl_train_params asked;
static size_t steps = STAMPED + 8;

static uint64_t stamp(const rl_phase_timestamps *timestamps, size_t block, size_t step, size_t at) {
  return timestamps->ns[(block * timestamps->steps + step) * (1 + timestamps->phase_count) + at];
}

static float *train(rl_phase_timestamps *timestamps, training *t) {
  float *weights = malloc(RL_PARAMETERS * sizeof *weights);
  assert_non_null(weights);
  *t = (training){.bytes_before = device->memory.total_bytes};
  must(rl_engine_find("mnist_cnn", asked.engine, &asked, NULL)->open(device, &asked, &t->instance, e));
  t->train = (rl_train_instance *)t->instance;
  assert_true(t->instance->ops->set_phase_timestamps && t->instance->ops->read_phase_timestamps);
  if (timestamps) must(t->instance->ops->set_phase_timestamps(t->instance, true, e));
  must(device->ops->plan(device, &t->instance->iteration, &t->epoch, e));
  must(device->ops->plan(device, &t->instance->evaluation, &t->test, e));
  run_epoch(t);
  if (timestamps) must(t->instance->ops->read_phase_timestamps(t->instance, timestamps, e));
  must(t->train->parameters(t->train, weights, e));
  return weights;
}

static void stamps_are_in_order(void **state) {
  (void)state;
  rl_phase_timestamps timestamps;
  training t;
  free(train(&timestamps, &t));
  assert_string_equal(timestamps.launch, t.instance->iteration.sequences[t.instance->step_sequence].launches[0].name);
  assert_true(timestamps.steps == (steps < STAMPED ? steps : STAMPED) && timestamps.blocks > 0 && timestamps.phase_count > 0 &&
              timestamps.begin_ns > 0 && timestamps.microbatches == 1);
  for (size_t block = 0; block < timestamps.blocks; block++) {
    uint64_t reached = timestamps.begin_ns;
    for (size_t step = 0; step < timestamps.steps; step++)
      for (size_t at = 0; at <= timestamps.phase_count; at++) {
        uint64_t now = stamp(&timestamps, block, step, at);
        bool part = now > 0, ends = at == 0 || at == timestamps.phase_count;
        if (ends) assert_true(part); /* every block begins and ends every step */
        if (!part) continue;
        if (now < reached)
          fail_msg("block %zu, step %zu: %s at %llu, after %llu", block, step, at ? timestamps.phases[at - 1].name : "begins",
                   (unsigned long long)now, (unsigned long long)reached);
        reached = now;
      }
    assert_true(reached <= timestamps.end_ns);
  }
  must(t.instance->ops->set_phase_timestamps(t.instance, false, e));
  assert_int_equal(t.instance->ops->read_phase_timestamps(t.instance, &timestamps, NULL), -1); /* nobody asks any more */
  close_training(&t);
}

static void stamping_changes_no_bit(void **state) {
  (void)state;
  rl_phase_timestamps timestamps;
  training t;
  float *stamped = train(&timestamps, &t);
  close_training(&t); /* while timestamps are made */
  float *plain = train(NULL, &t);
  close_training(&t);
  assert_memory_equal(stamped, plain, RL_PARAMETERS * sizeof *plain);
  free(stamped), free(plain);
}

/* Unwatched, sums of gradients lie where moments do between launches. */
static float *train_twice(rl_train_params params, bool watched) {
  float *weights = malloc(RL_PARAMETERS * sizeof *weights), *gradients = malloc(RL_PARAMETERS * sizeof *gradients);
  assert_true(weights && gradients);
  training t = open_training_as(params, watched);
  rl_elapsed took = {0};
  run_epoch(&t);
  must(device->ops->run(device, t.test, NULL, &took, e));
  run_epoch(&t);
  must(t.train->parameters(t.train, weights, e));
  assert_int_equal(t.train->gradients(t.train, gradients, NULL), watched ? 0 : -1);
  close_training(&t);
  free(gradients);
  return weights;
}

static void watching_changes_no_bit(void **state) {
  (void)state;
  for (int i = 0; i < engine_case_count; i++) {
    rl_train_params params = asked;
    params.precision = engine_cases[i].precision;
    float *watched = train_twice(params, true), *plain = train_twice(params, false);
    assert_memory_equal(watched, plain, RL_PARAMETERS * sizeof *plain);
    free(watched), free(plain);
  }
}

int main(int count, char **arguments) {
  int64_t batch = 64, last = 5;
  if (count == 4) batch = atoi(arguments[1]), steps = (size_t)atoi(arguments[2]), last = atoi(arguments[3]);
  need_gpu("persistent");
  asked = small_training(engine_cases[0], batch, ((int64_t)steps - 1) * batch + last);
  const struct CMUnitTest tests[] = {cmocka_unit_test(stamps_are_in_order), cmocka_unit_test(stamping_changes_no_bit),
                                     cmocka_unit_test(watching_changes_no_bit)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
