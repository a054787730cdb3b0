/* Tests the tuning cache. It stores a choice for each key, the number of an algorithm, in choices.tsv, for later processes with
 * the same key prefix. A damaged line of the file invalidates only its own choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library/tuning_cache.h"

static char cache_folder[64];

/* Runs a step in a separate process, because the cache also keeps choices in memory. A step returns 0 for success. Returns the
 * step's result. */
static int run_in_process(int (*step)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(step());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int add_choices(void) {
  rl_tuning_cache_set_key_prefix("card/1");
  if (rl_tuning_cache_find("conv a") != -1 || !rl_tuning_cache_is_persistent()) return 1;
  rl_tuning_cache_add("conv a", 7);
  rl_tuning_cache_add("conv b", 0);
  rl_tuning_cache_add("conv a", 9); /* a key keeps its first choice */
  return rl_tuning_cache_find("conv a") == 7 && rl_tuning_cache_find("conv b") == 0 && rl_tuning_cache_find("conv") == -1 ? 0 : 2;
}

static int find_choices(void) {
  rl_tuning_cache_set_key_prefix("card/1");
  return rl_tuning_cache_find("conv a") == 7 && rl_tuning_cache_find("conv b") == 0 && rl_tuning_cache_is_persistent() ? 0 : 1;
}

static int find_on_another_card(void) {
  rl_tuning_cache_set_key_prefix("card/2");
  return rl_tuning_cache_find("conv a") == -1 ? 0 : 1;
}

static int find_choices_of_another_process(void) {
  char path[128];
  rl_tuning_cache_set_key_prefix("card/3");
  if (rl_tuning_cache_find("conv a") != -1) return 1;
  snprintf(path, sizeof path, "%s/choices.tsv", cache_folder);
  FILE *file = fopen(path, "a");
  fputs("4\tcard/3 conv a\n5\tcard/3 con", file); /* the second line is not complete */
  fflush(file);
  bool complete_lines_only = rl_tuning_cache_find("conv a") == 4 && rl_tuning_cache_find("conv b") == -1;
  fputs("v b\n", file);
  fclose(file);
  return complete_lines_only && rl_tuning_cache_find("conv b") == 5 ? 0 : 2;
}

/* The file has at most 4096 choices of these, and fewer than 104 of the other steps. */
static int add_6000_choices(void) {
  char key[32], path[128];
  rl_tuning_cache_set_key_prefix("card/4");
  for (int i = 0; i < 6000; i++) {
    snprintf(key, sizeof key, "gemm %d", i);
    rl_tuning_cache_add(key, i);
  }
  snprintf(path, sizeof path, "%s/choices.tsv", cache_folder);
  FILE *file = fopen(path, "r");
  int lines = 0;
  for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  return lines < 4200 && rl_tuning_cache_find("gemm 0") == 0 && rl_tuning_cache_find("gemm 5999") == -1 ? 0 : 1;
}

static int add_without_a_folder(void) {
  unsetenv("ROOFLINED_CACHE_DIR");
  rl_tuning_cache_set_key_prefix("card/1");
  if (rl_tuning_cache_find("conv a") != -1) return 1;
  rl_tuning_cache_add("conv a", 3);
  return rl_tuning_cache_find("conv a") == 3 && !rl_tuning_cache_is_persistent() ? 0 : 2;
}

static int add_in_an_impossible_folder(void) {
  setenv("ROOFLINED_CACHE_DIR", "/proc/no/such", 1);
  rl_tuning_cache_set_key_prefix("card/1");
  rl_tuning_cache_add("conv a", 3);
  return rl_tuning_cache_find("conv a") == 3 && !rl_tuning_cache_is_persistent() ? 0 : 1;
}

static void choices_outlive_the_process(void **state) {
  (void)state;
  assert_int_equal(run_in_process(add_choices), 0);
  assert_int_equal(run_in_process(find_choices), 0);
  assert_int_equal(run_in_process(find_on_another_card), 0);
}

static void processes_share_their_choices(void **state) {
  (void)state;
  assert_int_equal(run_in_process(find_choices_of_another_process), 0);
}

static void the_number_of_choices_is_bounded(void **state) {
  (void)state;
  assert_int_equal(run_in_process(add_6000_choices), 0);
}

static void without_a_folder_choices_end_with_the_process(void **state) {
  (void)state;
  assert_int_equal(run_in_process(add_without_a_folder), 0);
  assert_int_equal(run_in_process(add_in_an_impossible_folder), 0);
}

static void damaged_lines_are_skipped(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/choices.tsv", cache_folder);
  FILE *file = fopen(path, "w");
  fputs("nonsense\n-4\tcard/1 conv a\n\t\n5 card/1 conv a\n", file);
  for (int i = 0; i < 5000; i++) fputc('x', file); /* longer than any line */
  fputs("\n7\tcard/1 conv a\n0\tcard/1 conv b\n8\tcard/1 conv a", file);
  fclose(file);
  assert_int_equal(run_in_process(find_choices), 0);
}

int main(void) {
  snprintf(cache_folder, sizeof cache_folder, "/tmp/rooflined-choices-XXXXXX");
  if (!mkdtemp(cache_folder)) return 1;
  strcat(cache_folder, "/cache"); /* created by the first choice */
  setenv("ROOFLINED_CACHE_DIR", cache_folder, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(choices_outlive_the_process),
                                     cmocka_unit_test(without_a_folder_choices_end_with_the_process),
                                     cmocka_unit_test(processes_share_their_choices), cmocka_unit_test(damaged_lines_are_skipped),
                                     cmocka_unit_test(the_number_of_choices_is_bounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
