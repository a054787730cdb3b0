/* Tests NVLink metrics from a fake NVML: links are described, and missing links have no properties. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_nvml.h"
#include "worker/topology.h"

static const char *const link_properties[] = {"nvlink__bandwidth",    "nvlink__is_direct_link", "nvlink__is_nvswitch_connected",
                                              "nvlink__peer_access",  "nvlink__peer_atomic",    "nvlink__system_access",
                                              "nvlink__system_atomic"};

static rl_topology topology;

static int reset_links(void **state) {
  (void)state;
  fake_nvml = (struct fake_nvml){0};
  return 0;
}

static const rl_kernel_metric *find_metric(const char *name) {
  for (size_t i = 0; i < topology.count; i++)
    if (strcmp(topology.items[i].metric, name) == 0) return &topology.items[i];
  fail_msg("there is no %s", name);
  return NULL;
}

static double metric_value(const char *name) {
  const rl_kernel_metric *found = find_metric(name);
  if (isnan(found->value)) fail_msg("%s: %s", name, found->reason);
  return found->value;
}

static void assert_reason(const char *name, const char *expected) {
  const rl_kernel_metric *found = find_metric(name);
  assert_true(isnan(found->value));
  if (strstr(found->reason, expected) == NULL) fail_msg("%s: %s", name, found->reason);
}

/* The device has two links to one GPU, one link to a switch, and one unconnected link. */
static void links_are_counted_and_described(void **state) {
  (void)state;
  fake_nvml.link_count = 4;
  fake_nvml.links[0] = (fake_link){true, FAKE_REMOTE_GPU, "0000:41:00.0"};
  fake_nvml.links[1] = (fake_link){true, FAKE_REMOTE_GPU, "0000:41:00.0"};
  fake_nvml.links[3] = (fake_link){true, FAKE_REMOTE_SWITCH, "0000:81:00.0"};
  rl_topology_read("GPU-1", &topology);
  static const struct {
    const char *name;
    double value;
  } expected[] = {{"nvlink__max_count", 4},
                  {"nvlink__count_physical", 3},
                  {"nvlink__count_logical", 2},
                  {"nvlink__enabled_mask", 0xb},
                  {"nvlink__bandwidth", 3 * 26562e6},
                  {"nvlink__is_direct_link", 1},
                  {"nvlink__is_nvswitch_connected", 1},
                  {"nvlink__peer_access", 1},
                  {"nvlink__peer_atomic", 0},
                  {"nvlink__system_access", 0},
                  {"nvlink__system_atomic", 0}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    assert_true(metric_value(expected[i].name) == expected[i].value);
}

/* The only GPU of a machine has such links. */
static void unconnected_links_have_no_properties(void **state) {
  (void)state;
  fake_nvml.link_count = 4;
  rl_topology_read("GPU-1", &topology);
  assert_true(metric_value("nvlink__max_count") == 4 && metric_value("nvlink__count_physical") == 0);
  assert_true(metric_value("nvlink__count_logical") == 0 && metric_value("nvlink__enabled_mask") == 0);
  for (size_t i = 0; i < sizeof link_properties / sizeof *link_properties; i++)
    assert_reason(link_properties[i], "no NVLink of this device is connected");
}

static void a_device_without_link_support_has_no_links(void **state) {
  (void)state;
  fake_nvml.count_result = FAKE_NVML_NOT_SUPPORTED;
  rl_topology_read("GPU-1", &topology);
  assert_reason("nvlink__max_count", "Not Supported");
  assert_true(metric_value("nvlink__count_physical") == 0 && metric_value("nvlink__enabled_mask") == 0);
  for (size_t i = 0; i < sizeof link_properties / sizeof *link_properties; i++) assert_reason(link_properties[i], "no NVLink");
}

static void an_nvml_error_is_not_zero(void **state) {
  (void)state;
  fake_nvml.count_result = FAKE_NVML_UNKNOWN_ERROR;
  rl_topology_read("GPU-1", &topology);
  assert_reason("nvlink__max_count", "Unknown Error");
  assert_reason("nvlink__count_physical", "Unknown Error");
  assert_reason("nvlink__enabled_mask", "Unknown Error");
  for (size_t i = 0; i < sizeof link_properties / sizeof *link_properties; i++)
    assert_reason(link_properties[i], "Unknown Error");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(links_are_counted_and_described, reset_links),
                                     cmocka_unit_test_setup(unconnected_links_have_no_properties, reset_links),
                                     cmocka_unit_test_setup(a_device_without_link_support_has_no_links, reset_links),
                                     cmocka_unit_test_setup(an_nvml_error_is_not_zero, reset_links)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
