/* Tests the pools of request threads: order of tasks, bounded queues, continuations (accepted even by a full queue), liveness and
 * stop. The tasks have no connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/request_pools.h"

enum { MAX_TASKS = 10000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* the tasks wait until the test unlocks it */
static atomic_int started, finished;

static void wait_at_gate(rl_pool_task *task) {
  (void)task;
  atomic_fetch_add(&started, 1);
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  atomic_fetch_add(&finished, 1);
}

static void wait_for(atomic_int *count, int value) {
  for (int i = 0; i < 10000 && atomic_load(count) < value; i++) usleep(1000);
  assert_int_equal(atomic_load(count), value);
}

static rl_request_pools *start_pools(void) {
  rl_error err;
  rl_request_pools *pools = rl_request_pools_start(&err);
  assert_non_null(pools);
  atomic_store(&started, 0);
  atomic_store(&finished, 0);
  return pools;
}

static rl_pool_task *make_tasks(void) {
  rl_pool_task *tasks = calloc(MAX_TASKS, sizeof *tasks);
  assert_non_null(tasks);
  for (int i = 0; i < MAX_TASKS; i++) tasks[i].run = wait_at_gate;
  return tasks;
}

/* Starts `threads` tasks, then fills the queue. Returns the number of accepted tasks. */
static int fill_pool(rl_request_pools *pools, rl_pool pool, rl_pool_task *tasks, int threads) {
  int accepted = 0;
  while (accepted < threads && rl_request_pools_submit(pools, pool, &tasks[accepted])) accepted++;
  wait_for(&started, threads);
  while (accepted < MAX_TASKS && rl_request_pools_submit(pools, pool, &tasks[accepted])) accepted++;
  return accepted;
}

static void a_full_queue_refuses(void **state) {
  (void)state;
  rl_request_pools *pools = start_pools();
  rl_pool_task *tasks = make_tasks(), other = {.run = wait_at_gate};
  pthread_mutex_lock(&gate);
  int accepted = fill_pool(pools, RL_POOL_HEAVY, tasks, 2);
  assert_in_range(accepted, 3, MAX_TASKS - 2);
  assert_false(rl_request_pools_submit(pools, RL_POOL_HEAVY, &tasks[accepted]));
  assert_true(rl_request_pools_continue(pools, RL_POOL_HEAVY, &tasks[accepted]));
  assert_true(rl_request_pools_submit(pools, RL_POOL_CONTROL, &other)); /* another pool has its own queue and threads */
  wait_for(&started, 3);
  pthread_mutex_unlock(&gate);
  wait_for(&finished, accepted + 2);
  assert_true(rl_request_pools_submit(pools, RL_POOL_HEAVY, &other));
  wait_for(&finished, accepted + 3);
  rl_request_pools_free(pools);
  free(tasks);
}

static void a_stop_runs_what_was_accepted(void **state) {
  (void)state;
  rl_request_pools *pools = start_pools();
  rl_pool_task *tasks = make_tasks();
  for (int i = 0; i < 100; i++) assert_true(rl_request_pools_submit(pools, RL_POOL_READ, &tasks[i]));
  rl_request_pools_stop(pools);
  assert_int_equal(atomic_load(&finished), 100);
  assert_false(rl_request_pools_submit(pools, RL_POOL_READ, &tasks[100]));
  assert_false(rl_request_pools_continue(pools, RL_POOL_READ, &tasks[100]));
  rl_request_pools_free(pools);
  free(tasks);
}

static void inline_requests_have_no_pool(void **state) {
  (void)state;
  rl_request_pools *pools = start_pools();
  rl_pool_task task = {.run = wait_at_gate};
  assert_false(rl_request_pools_submit(pools, RL_POOL_INLINE, &task));
  rl_request_pools_free(pools);
}

static void hung_threads_are_found(void **state) {
  (void)state;
  rl_error err;
  rl_request_pools *pools = start_pools();
  rl_pool_task *tasks = make_tasks();
  pthread_mutex_lock(&gate);
  assert_true(rl_request_pools_submit(pools, RL_POOL_HEAVY, &tasks[0]));
  wait_for(&started, 1);
  assert_int_equal(rl_request_pools_check_liveness(pools, 0, &err), 0); /* the other thread is idle */
  assert_true(rl_request_pools_submit(pools, RL_POOL_HEAVY, &tasks[1]));
  wait_for(&started, 2);
  assert_int_equal(rl_request_pools_check_liveness(pools, 0, &err), -1);
  assert_int_equal(rl_request_pools_check_liveness(pools, INT64_C(60000000000), &err), 0);
  pthread_mutex_unlock(&gate);
  rl_request_pools_free(pools);
  free(tasks);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_queue_refuses),
      cmocka_unit_test(a_stop_runs_what_was_accepted),
      cmocka_unit_test(inline_requests_have_no_pool),
      cmocka_unit_test(hung_threads_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
