/* Tests how long a worker's main thread may take from one check point to the next. */
#include "worker/heartbeat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { QUIET_S = 29, ITERATION_S = 300, OTHER_S = 900 };

/* If the process used no CPU time for six heartbeats (30 s), the limit is short in the stages in which the main thread computes
 * or the driver spins. */
static void the_limit_depends_on_stage_and_cpu_time(void **state) {
  static const struct {
    const char *stage;
    int busy_s, quiet_cpu_s, quiet_gpu_s; /* limits of a busy worker, and of quiet workers for a CPU and for a GPU */
  } cases[] = {{"warmup", ITERATION_S, QUIET_S, QUIET_S},   {"epoch", ITERATION_S, QUIET_S, QUIET_S},
               {"evaluate", ITERATION_S, QUIET_S, QUIET_S}, {"open", OTHER_S, OTHER_S, OTHER_S},
               {"counters", OTHER_S, QUIET_S, OTHER_S},     {"", OTHER_S, QUIET_S, OTHER_S}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int quiet_beats = 0; quiet_beats < 8; quiet_beats++) {
      const bool is_quiet = quiet_beats >= 6;
      const int cpu_s = is_quiet ? cases[i].quiet_cpu_s : cases[i].busy_s;
      const int gpu_s = is_quiet ? cases[i].quiet_gpu_s : cases[i].busy_s;
      assert_int_equal(rl_heartbeat_limit_ms(true, cases[i].stage, quiet_beats), cpu_s * 1000);
      assert_int_equal(rl_heartbeat_limit_ms(false, cases[i].stage, quiet_beats), gpu_s * 1000);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_limit_depends_on_stage_and_cpu_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
