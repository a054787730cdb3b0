/* Tests the phase timestamps of the engine "persistent": every block records them in order and within the launch's time, and the
 * weights have the same bits with and without timestamps, whether tensors are exposed or not. Arguments: images per step (at most
 * 64), steps, images of the last step. Without arguments: 64, 40 (more steps than are recorded), 5. */
#include "fixture.h"

enum { RECORDED_STEPS = 32 };
static rl_train_params training_params;
static size_t steps = RECORDED_STEPS + 8;

/* Returns a timestamp of one block in one step: index 0 is the beginning of the step, index 1 + i the end of phase i. */
static uint64_t timestamp_at(const rl_phase_timestamps *timestamps, size_t block, size_t step, size_t index) {
  return timestamps->ns[(block * timestamps->steps + step) * (1 + timestamps->phase_count) + index];
}

static float *train(rl_phase_timestamps *timestamps, training *t) {
  float *weights = malloc(RL_PARAMETERS * sizeof *weights);
  assert_non_null(weights);
  *t = (training){.bytes_before = device->memory_usage.total_bytes};
  must(rl_engine_find("mnist_cnn", training_params.engine, &training_params, NULL)
           ->open(device, &training_params, &t->instance, e));
  t->train = (rl_train_instance *)t->instance;
  assert_true(t->instance->ops->set_phase_timestamps && t->instance->ops->read_phase_timestamps);
  if (timestamps) must(t->instance->ops->set_phase_timestamps(t->instance, true, e));
  must(device->ops->instantiate(device, &t->instance->iteration, &t->epoch, e));
  must(device->ops->instantiate(device, &t->instance->evaluation, &t->test, e));
  run_epoch(t);
  if (timestamps) must(t->instance->ops->read_phase_timestamps(t->instance, timestamps, e));
  must(t->train->parameters(t->train, weights, e));
  return weights;
}

static void timestamps_are_in_order(void **state) {
  (void)state;
  rl_phase_timestamps timestamps;
  training t;
  free(train(&timestamps, &t));
  assert_string_equal(timestamps.launch, t.instance->iteration.sequences[t.instance->step_sequence].launches[0].name);
  assert_true(timestamps.steps == (steps < RECORDED_STEPS ? steps : RECORDED_STEPS) && timestamps.blocks > 0 &&
              timestamps.phase_count > 0 && timestamps.begin_ns > 0 && timestamps.microbatches == 1);
  for (size_t block = 0; block < timestamps.blocks; block++) {
    uint64_t previous = timestamps.begin_ns;
    for (size_t step = 0; step < timestamps.steps; step++)
      for (size_t i = 0; i <= timestamps.phase_count; i++) {
        uint64_t now = timestamp_at(&timestamps, block, step, i);
        bool is_recorded = now > 0, is_required = i == 0 || i == timestamps.phase_count;
        if (is_required) assert_true(is_recorded); /* every block begins and ends every step */
        if (!is_recorded) continue;
        if (now < previous)
          fail_msg("block %zu, step %zu: %s at %llu, after %llu", block, step, i ? timestamps.phases[i - 1].name : "begins",
                   (unsigned long long)now, (unsigned long long)previous);
        previous = now;
      }
    assert_true(previous <= timestamps.end_ns);
  }
  must(t.instance->ops->set_phase_timestamps(t.instance, false, e));
  /* While recording is off, there are no timestamps to read. */
  assert_int_equal(t.instance->ops->read_phase_timestamps(t.instance, &timestamps, NULL), -1);
  close_training(&t);
}

static void recording_changes_no_bit(void **state) {
  (void)state;
  rl_phase_timestamps timestamps;
  training t;
  float *with_timestamps = train(&timestamps, &t);
  close_training(&t); /* closing while recording is on must work too */
  float *plain = train(NULL, &t);
  close_training(&t);
  assert_memory_equal(with_timestamps, plain, RL_PARAMETERS * sizeof *plain);
  free(with_timestamps), free(plain);
}

/* Trains two epochs and returns the weights. Two are needed because the sums of gradients and Adam's moments share memory between
 * launches when tensors are not exposed. */
static float *train_twice(rl_train_params params, bool exposed) {
  float *weights = malloc(RL_PARAMETERS * sizeof *weights), *gradients = malloc(RL_PARAMETERS * sizeof *gradients);
  assert_true(weights && gradients);
  training t = open_training_as(params, exposed);
  rl_elapsed elapsed = {0};
  run_epoch(&t);
  must(device->ops->run(device, t.test, NULL, &elapsed, e));
  run_epoch(&t);
  must(t.train->parameters(t.train, weights, e));
  assert_int_equal(t.train->gradients(t.train, gradients, NULL), exposed ? 0 : -1);
  close_training(&t);
  free(gradients);
  return weights;
}

static void exposing_changes_no_bit(void **state) {
  (void)state;
  for (int i = 0; i < engine_case_count; i++) {
    rl_train_params params = training_params;
    params.precision = engine_cases[i].precision;
    float *exposed = train_twice(params, true), *plain = train_twice(params, false);
    assert_memory_equal(exposed, plain, RL_PARAMETERS * sizeof *plain);
    free(exposed), free(plain);
  }
}

int main(int count, char **arguments) {
  int64_t batch = 64, last = 5;
  if (count == 4) batch = atoi(arguments[1]), steps = (size_t)atoi(arguments[2]), last = atoi(arguments[3]);
  need_gpu("persistent");
  training_params = small_training(engine_cases[0], batch, ((int64_t)steps - 1) * batch + last);
  const struct CMUnitTest tests[] = {cmocka_unit_test(timestamps_are_in_order), cmocka_unit_test(recording_changes_no_bit),
                                     cmocka_unit_test(exposing_changes_no_bit)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
