/* A range of addresses that is one piece of memory: what is written anywhere is found everywhere, and nothing stays behind. */
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
static const size_t BYTES = 128 << 20, PIECE = 4 << 20;

static rl_error err;

static void must(int result, const char *what) {
  if (result != 0) fail_msg("%s: %s", what, err.message);
}

static void cuda(cudaError_t result, const char *what) { must(rl_cuda_check(result, what, &err), what); }

static size_t unused(void) {
  size_t available = 0, all = 0;
  cuda(cudaDeviceSynchronize(), "device");
  cuda(cudaMemGetInfo(&available, &all), "memory");
  return available;
}

/* 6 MiB do not divide the range. */
static void what_is_written_is_found_in_every_piece(void **state) {
  (void)state;
  const size_t pieces[] = {PIECE, 6 << 20};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    rl_aliased_mapping fold;
    must(rl_aliased_mapping_open(&fold, 0, BYTES, pieces[i], &err), "fold");
    if (!fold.mapped) print_message("the device does not map memory\n");
    assert_true(!fold.mapped || fold.bytes >= BYTES);
    const size_t piece = pieces[i], at = (size_t)rand() % (piece / 4) * 4;
    const uint32_t written = (uint32_t)rand() | 1;
    uint32_t found = 0;
    cuda(cudaMemset(fold.address, 0, piece), "zeros");
    cuda(cudaMemcpy((char *)fold.address + fold.bytes - piece + at, &written, sizeof written, cudaMemcpyDefault), "write");
    for (size_t from = 0; from < fold.bytes; from += piece, found = 0) {
      cuda(cudaMemcpy(&found, (char *)fold.address + from + at, sizeof found, cudaMemcpyDefault), "read");
      assert_int_equal(found, written);
    }
    rl_aliased_mapping_close(&fold);
  }
}

static void it_takes_one_piece_and_gives_it_back(void **state) {
  (void)state;
  size_t steady = 0;
  for (int turn = 0; turn < 50; turn++) {
    rl_aliased_mapping fold;
    const size_t before = unused();
    must(rl_aliased_mapping_open(&fold, 0, BYTES, PIECE, &err), "fold");
    assert_true(before - unused() <= 2 * PIECE);
    rl_aliased_mapping_close(&fold);
    if (turn == 5) steady = unused();
  }
  assert_int_equal(unused(), steady);
}

static void none_is_closed_as_well(void **state) {
  (void)state;
  rl_aliased_mapping fold = {0};
  rl_aliased_mapping_close(&fold);
  assert_int_equal(cudaGetLastError(), cudaSuccess);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_found_in_every_piece),
                                     cmocka_unit_test(it_takes_one_piece_and_gives_it_back),
                                     cmocka_unit_test(none_is_closed_as_well)};
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no CUDA device\n");
    return SKIP;
  }
  srand((unsigned)time(NULL));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
