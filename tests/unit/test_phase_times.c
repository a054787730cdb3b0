/* Tests how the time of a trace is divided among the phases of a step, on operations whose phases are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/critical_path.h"
#include "analyze/phase_times.h"

enum { CONV, CONV_GRAD, GEMM, COPY, LAUNCH, NAME_COUNT };
static const char *const names[NAME_COUNT] = {"conv", "conv_grad", "gemm", "memcpy HtoD", "cudaLaunchKernel"};

#define KERNEL_EVENT(name_, start, end) \
  { .kind = RL_ACTIVITY_KERNEL, .name = (name_), .start_ns = (start), .end_ns = (end) }
#define COPY_EVENT(start, end) \
  { .kind = RL_ACTIVITY_MEMCPY, .name = COPY, .start_ns = (start), .end_ns = (end) }

static rl_time_classes compute_phase_times(const rl_trace_event *items, size_t count, const rl_phase_share *shares,
                                           size_t share_count, rl_phase_times *phases) {
  rl_trace_events events = {items, count, names, NAME_COUNT, NULL};
  rl_trace_index index;
  rl_name_times times;
  rl_critical_path path;
  rl_time_classes classes;
  rl_error err = {0};
  assert_return_code(rl_trace_index_build(&events, &index, &err), 0);
  assert_return_code(rl_critical_path_compute(&index, &path, &err), 0);
  assert_return_code(rl_name_times_begin(&index, path.operation_ns, &times, &err), 0);
  const rl_time_observer observer = rl_name_times_observer(&times);
  assert_return_code(rl_time_classes_compute(&index, &observer, &classes, &err), 0);
  rl_phase_times_compute(&times, shares, share_count, phases);
  rl_name_times_clear(&times);
  rl_critical_path_clear(&path);
  rl_trace_index_clear(&index);
  return classes;
}

static void assert_phase(const rl_phase_times *phases, size_t i, const char *phase, int64_t compute_ns, int64_t time_ns) {
  assert_string_equal(phases->items[i].phase, phase);
  assert_int_equal(phases->items[i].class_ns[RL_TIME_COMPUTE], compute_ns);
  assert_int_equal(phases->items[i].time_ns, time_ns);
}

/* The idle time before an operation belongs to the operation's phase. A copy has no phase. */
static void a_phase_has_the_time_of_its_operations_and_the_idle_time_before_them(void **state) {
  (void)state;
  const rl_trace_event items[] = {COPY_EVENT(0, 10), KERNEL_EVENT(CONV, 10, 40), KERNEL_EVENT(CONV_GRAD, 45, 55),
                                  KERNEL_EVENT(CONV, 55, 56)};
  const rl_phase_share shares[] = {{CONV, "forward", 3}, {CONV_GRAD, "backward", 2}};
  rl_phase_times phases;
  rl_time_classes classes = compute_phase_times(items, 4, shares, 2, &phases);
  assert_int_equal(phases.count, 3);
  assert_phase(&phases, 0, "forward", 31, 31);
  assert_phase(&phases, 1, "backward", 10, 15);
  assert_phase(&phases, 2, "", 0, 10);
  const int64_t *forward = phases.items[0].totals, *backward = phases.items[1].totals, *without = phases.items[2].totals;
  assert_true(forward[RL_TOTAL_SHORT_KERNELS] == 2 && forward[RL_TOTAL_SHORT_KERNELS_NS] == 31);
  assert_true(backward[RL_TOTAL_SHORT_KERNELS] == 1 && backward[RL_TOTAL_SHORT_KERNELS_NS] == 10);
  assert_true(without[RL_TOTAL_COPIES] == 1 && without[RL_TOTAL_COPIES_NS] == 10 && without[RL_TOTAL_BLOCKING_COPIES] == 0);
  assert_int_equal(forward[RL_TOTAL_CRITICAL_PATH_NS] + backward[RL_TOTAL_CRITICAL_PATH_NS] + without[RL_TOTAL_CRITICAL_PATH_NS],
                   51); /* all operations; the window has 5 ns more */
  rl_time_classes_clear(&classes);
}

/* Two phases with the weights 2 and 1 launch the kernel: they get 5 and 2 of its 7 ns. */
static void the_time_of_a_kernel_is_divided_among_its_phases(void **state) {
  (void)state;
  const rl_trace_event items[] = {KERNEL_EVENT(GEMM, 0, 7)};
  const rl_phase_share shares[] = {{GEMM, "forward", 2}, {GEMM, "backward", 1}};
  rl_phase_times phases;
  rl_time_classes classes = compute_phase_times(items, 1, shares, 2, &phases);
  assert_int_equal(phases.count, 2);
  assert_phase(&phases, 0, "forward", 5, 5);
  assert_phase(&phases, 1, "backward", 2, 2);
  assert_int_equal(phases.items[0].totals[RL_TOTAL_SHORT_KERNELS_NS], 5);
  assert_int_equal(phases.items[1].totals[RL_TOTAL_CRITICAL_PATH_NS], 2);
  rl_time_classes_clear(&classes);
}

/* A short kernel without a phase runs while another kernel does, so it has no time of the window. */
static void an_operation_without_time_keeps_its_totals(void **state) {
  (void)state;
  const rl_trace_event items[] = {KERNEL_EVENT(CONV, 0, 40), KERNEL_EVENT(GEMM, 10, 20)};
  const rl_phase_share shares[] = {{CONV, "forward", 1}};
  rl_phase_times phases;
  rl_time_classes classes = compute_phase_times(items, 2, shares, 1, &phases);
  assert_int_equal(phases.count, 2);
  assert_phase(&phases, 1, "", 0, 0);
  assert_true(phases.items[1].totals[RL_TOTAL_SHORT_KERNELS] == 1 && phases.items[1].totals[RL_TOTAL_SHORT_KERNELS_NS] == 10);
  rl_time_classes_clear(&classes);
}

static void a_trace_without_phases_has_none(void **state) {
  (void)state;
  const rl_trace_event items[] = {KERNEL_EVENT(GEMM, 0, 7)};
  rl_phase_times phases;
  rl_time_classes classes = compute_phase_times(items, 1, NULL, 0, &phases);
  assert_int_equal(phases.count, 0);
  rl_time_classes_clear(&classes);
}

/* With random weights, and even with more phases than RL_MAX_PHASES, the times of the phases add up to the time of each class. */
static void phases_add_up_to_the_window(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 200; seed++) {
    rl_trace_event items[40];
    rl_phase_share shares[3 * 20];
    srand(seed);
    size_t count = 0, share_count = 0;
    for (int64_t start_ns = 0; count < 40; count++, start_ns += rand() % 60)
      items[count] = (rl_trace_event)KERNEL_EVENT((uint32_t)(rand() % 3), start_ns, start_ns + 1 + rand() % 50);
    for (uint32_t name = 0; name < 3; name++)
      for (int i = rand() % 21; i > 0; i--, share_count++) {
        shares[share_count] = (rl_phase_share){.name = name, .weight = 0.1 + rand() % 100};
        if (rand() % 5 > 0) snprintf(shares[share_count].phase, RL_NAME_SIZE, "phase %d", rand() % 60);
      }
    rl_phase_times phases;
    rl_time_classes classes = compute_phase_times(items, count, shares, share_count, &phases);
    assert_true(phases.count <= RL_MAX_PHASES);
    for (int k = 0; k < RL_TIME_CLASS_COUNT && phases.count > 0; k++) {
      int64_t sum = 0;
      for (size_t i = 0; i < phases.count; i++) sum += phases.items[i].class_ns[k];
      assert_int_equal(sum, classes.class_ns[k]);
    }
    int64_t kernels = 0, path_ns = 0;
    for (size_t i = 0; i < phases.count; i++) {
      kernels += phases.items[i].totals[RL_TOTAL_SHORT_KERNELS];
      path_ns += phases.items[i].totals[RL_TOTAL_CRITICAL_PATH_NS];
    }
    assert_true(phases.count == 0 || (kernels == 40 && path_ns > 0 && path_ns <= classes.end_ns - classes.start_ns));
    rl_time_classes_clear(&classes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_phase_has_the_time_of_its_operations_and_the_idle_time_before_them),
                                     cmocka_unit_test(the_time_of_a_kernel_is_divided_among_its_phases),
                                     cmocka_unit_test(an_operation_without_time_keeps_its_totals),
                                     cmocka_unit_test(a_trace_without_phases_has_none),
                                     cmocka_unit_test(phases_add_up_to_the_window)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
