/* Tests that a write to one chunk of an aliased mapping (aliased_mapping.h) is visible in every chunk, that a mapping takes the
 * memory of about one chunk, and that closing it frees the memory. */
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "worker/cupti/aliased_mapping.h"
#include "worker/cupti/check.h"

enum { SKIP = 77 };
static const size_t RANGE_BYTES = 128 << 20, CHUNK_BYTES = 4 << 20;

static rl_error err;

static void check(int result, const char *operation) {
  if (result != 0) fail_msg("%s: %s", operation, err.message);
}

static void check_cuda(cudaError_t result, const char *operation) { check(rl_cuda_check(result, operation, &err), operation); }

static size_t free_device_bytes(void) {
  size_t available = 0, total = 0;
  check_cuda(cudaDeviceSynchronize(), "device");
  check_cuda(cudaMemGetInfo(&available, &total), "memory");
  return available;
}

/* Tests chunks of 4 MiB, which divide the range, and of 6 MiB, which do not. */
static void a_write_is_visible_in_every_chunk(void **state) {
  (void)state;
  const size_t chunk_bytes[] = {CHUNK_BYTES, 6 << 20};
  for (size_t i = 0; i < sizeof chunk_bytes / sizeof *chunk_bytes; i++) {
    rl_aliased_mapping mapping;
    check(rl_aliased_mapping_open(&mapping, 0, RANGE_BYTES, chunk_bytes[i], &err), "mapping");
    if (!mapping.mapped) print_message("the device does not map memory\n");
    assert_true(!mapping.mapped || mapping.bytes >= RANGE_BYTES);
    const size_t chunk = chunk_bytes[i], offset = (size_t)rand() % (chunk / 4) * 4;
    const uint32_t written = (uint32_t)rand() | 1;
    uint32_t found = 0;
    check_cuda(cudaMemset(mapping.address, 0, chunk), "zeros");
    check_cuda(cudaMemcpy((char *)mapping.address + mapping.bytes - chunk + offset, &written, sizeof written, cudaMemcpyDefault),
               "write");
    for (size_t from = 0; from < mapping.bytes; from += chunk, found = 0) {
      check_cuda(cudaMemcpy(&found, (char *)mapping.address + from + offset, sizeof found, cudaMemcpyDefault), "read");
      assert_int_equal(found, written);
    }
    rl_aliased_mapping_close(&mapping);
  }
}

static void a_mapping_takes_one_chunk_and_frees_it(void **state) {
  (void)state;
  size_t steady = 0;
  for (int round = 0; round < 50; round++) {
    rl_aliased_mapping mapping;
    const size_t before = free_device_bytes();
    check(rl_aliased_mapping_open(&mapping, 0, RANGE_BYTES, CHUNK_BYTES, &err), "mapping");
    assert_true(before - free_device_bytes() <= 2 * CHUNK_BYTES);
    rl_aliased_mapping_close(&mapping);
    if (round == 5) steady = free_device_bytes();
  }
  assert_int_equal(free_device_bytes(), steady);
}

static void a_zeroed_mapping_can_be_closed(void **state) {
  (void)state;
  rl_aliased_mapping mapping = {0};
  rl_aliased_mapping_close(&mapping);
  assert_int_equal(cudaGetLastError(), cudaSuccess);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_write_is_visible_in_every_chunk),
                                     cmocka_unit_test(a_mapping_takes_one_chunk_and_frees_it),
                                     cmocka_unit_test(a_zeroed_mapping_can_be_closed)};
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no CUDA device\n");
    return SKIP;
  }
  srand((unsigned)time(NULL));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
