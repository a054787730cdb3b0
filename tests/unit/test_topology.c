/* Tests that rl_topology finds the NUMA nodes of a set of CPUs, and that without NVML every metric is NAN and has a reason. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/topology.h"
#include "temporary_folder.h"

static char folder[64];

/* Writes nodeN/cpulist as in /sys/devices/system/node. */
static void write_node(int node, const char *cpus) {
  char path[128];
  snprintf(path, sizeof path, "%s/node%d", folder, node);
  assert_int_equal(mkdir(path, 0700), 0);
  strcat(path, "/cpulist");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s\n", cpus);
  assert_int_equal(fclose(file), 0);
}

static const rl_kernel_metric *find_metric(const rl_topology *topology, const char *name) {
  for (size_t i = 0; i < topology->count; i++)
    if (strcmp(topology->items[i].metric, name) == 0) return &topology->items[i];
  return NULL;
}

static int make_nodes_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/rooflined-nodes-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_nodes(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

static void nodes_are_found_by_their_cpus(void **state) {
  (void)state;
  write_node(0, "0-15,64-79");
  write_node(1, "16-31");
  write_node(2, "");
  write_node(7, "32,40");
  static const struct {
    unsigned cpu;
    const char *node;
  } cases[] = {{0, "0"}, {15, "0"}, {70, "0"}, {16, "1"}, {40, "7"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned long cpu_mask[2] = {0};
    rl_topology topology = {0};
    char name[64];
    cpu_mask[cases[i].cpu / 64] = 1ul << cases[i].cpu % 64;
    rl_topology_append_cpu_nodes(folder, cpu_mask, 2, &topology);
    snprintf(name, sizeof name, "numa__id_cpu:%s", cases[i].node);
    assert_int_equal(topology.count, 2);
    assert_true(find_metric(&topology, "numa__id_cpu")->value == 1);
    assert_non_null(find_metric(&topology, name));
  }
  rl_topology topology = {0};
  rl_topology_append_cpu_nodes(folder, (unsigned long[]){1ul << 20 | 1ul << 33 | 1ul << 40}, 1, &topology);
  assert_true(find_metric(&topology, "numa__id_cpu")->value == 2); /* CPU 20 is in node 1, 40 in node 7, 33 in none */
  assert_null(find_metric(&topology, "numa__id_cpu:0"));
}

static void a_host_without_nodes_has_a_reason(void **state) {
  (void)state;
  rl_topology topology = {0};
  rl_topology_append_cpu_nodes("/nowhere", (unsigned long[]){1}, 1, &topology);
  assert_int_equal(topology.count, 1);
  assert_true(isnan(topology.items[0].value) && topology.items[0].reason[0] != '\0');
}

/* Uses an empty UUID and the UUID of no GPU, so that the test also passes where NVML is installed. */
static void without_the_device_every_metric_has_a_reason(void **state) {
  (void)state;
  static const char *const uuids[] = {"", "GPU-00000000-0000-0000-0000-000000000000"};
  for (size_t u = 0; u < 2; u++) {
    rl_topology topology;
    rl_topology_read(uuids[u], &topology);
    assert_int_equal(topology.count, 17);
    for (size_t i = 0; i < topology.count; i++)
      assert_true(isnan(topology.items[i].value) && topology.items[i].reason[0] != '\0');
    assert_non_null(find_metric(&topology, "nvlink__max_count"));
    assert_non_null(find_metric(&topology, "c2clink__present"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_are_found_by_their_cpus),
                                     cmocka_unit_test(a_host_without_nodes_has_a_reason),
                                     cmocka_unit_test(without_the_device_every_metric_has_a_reason)};
  return cmocka_run_group_tests(tests, make_nodes_folder, remove_nodes);
}
