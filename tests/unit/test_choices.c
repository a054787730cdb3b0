/* Choices are kept for later processes with the same scope. A damaged file only loses choices. */
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

#include "library/choices.h"

static char folder[64];

/* Runs each step in a process of its own, because choices are also kept in memory. */
static int run_in_process(int (*step)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(step());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int choose_three(void) {
  rl_choices_set_scope("card/1");
  if (rl_choices_find("conv a") != -1 || !rl_choices_are_persistent()) return 1;
  rl_choices_add("conv a", 7);
  rl_choices_add("conv b", 0);
  rl_choices_add("conv a", 9); /* a key keeps its first choice */
  return rl_choices_find("conv a") == 7 && rl_choices_find("conv b") == 0 && rl_choices_find("conv") == -1 ? 0 : 2;
}

static int recall_them(void) {
  rl_choices_set_scope("card/1");
  return rl_choices_find("conv a") == 7 && rl_choices_find("conv b") == 0 && rl_choices_are_persistent() ? 0 : 1;
}

static int recall_on_another_card(void) {
  rl_choices_set_scope("card/2");
  return rl_choices_find("conv a") == -1 ? 0 : 1;
}

static int see_what_another_process_adds(void) {
  char path[128];
  rl_choices_set_scope("card/3");
  if (rl_choices_find("conv a") != -1) return 1;
  snprintf(path, sizeof path, "%s/choices.tsv", folder);
  FILE *file = fopen(path, "a");
  fputs("4\tcard/3 conv a\n5\tcard/3 con", file);
  fflush(file);
  bool whole = rl_choices_find("conv a") == 4 && rl_choices_find("conv b") == -1;
  fputs("v b\n", file);
  fclose(file);
  return whole && rl_choices_find("conv b") == 5 ? 0 : 2;
}

static int choose_too_much(void) {
  char key[32], path[128];
  rl_choices_set_scope("card/4");
  for (int i = 0; i < 6000; i++) {
    snprintf(key, sizeof key, "gemm %d", i);
    rl_choices_add(key, i);
  }
  snprintf(path, sizeof path, "%s/choices.tsv", folder);
  FILE *file = fopen(path, "r");
  int lines = 0;
  for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  return lines < 4200 && rl_choices_find("gemm 0") == 0 && rl_choices_find("gemm 5999") == -1 ? 0 : 1;
}

static int choose_without_a_folder(void) {
  unsetenv("ROOFLINED_CACHE_DIR");
  rl_choices_set_scope("card/1");
  if (rl_choices_find("conv a") != -1) return 1;
  rl_choices_add("conv a", 3);
  return rl_choices_find("conv a") == 3 && !rl_choices_are_persistent() ? 0 : 2;
}

static int choose_in_a_folder_that_can_not_be(void) {
  setenv("ROOFLINED_CACHE_DIR", "/proc/no/such", 1);
  rl_choices_set_scope("card/1");
  rl_choices_add("conv a", 3);
  return rl_choices_find("conv a") == 3 && !rl_choices_are_persistent() ? 0 : 1;
}

static void choices_outlive_the_process(void **state) {
  (void)state;
  assert_int_equal(run_in_process(choose_three), 0);
  assert_int_equal(run_in_process(recall_them), 0);
  assert_int_equal(run_in_process(recall_on_another_card), 0);
}

static void processes_see_each_other_s(void **state) {
  (void)state;
  assert_int_equal(run_in_process(see_what_another_process_adds), 0);
}

static void there_is_an_end_to_them(void **state) {
  (void)state;
  assert_int_equal(run_in_process(choose_too_much), 0);
}

static void without_a_folder_they_do_not(void **state) {
  (void)state;
  assert_int_equal(run_in_process(choose_without_a_folder), 0);
  assert_int_equal(run_in_process(choose_in_a_folder_that_can_not_be), 0);
}

static void a_damaged_file_is_passed_over(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/choices.tsv", folder);
  FILE *file = fopen(path, "w");
  fputs("nonsense\n-4\tcard/1 conv a\n\t\n5 card/1 conv a\n", file);
  for (int i = 0; i < 5000; i++) fputc('x', file); /* longer than any line */
  fputs("\n7\tcard/1 conv a\n0\tcard/1 conv b\n8\tcard/1 conv a", file);
  fclose(file);
  assert_int_equal(run_in_process(recall_them), 0);
}

int main(void) {
  snprintf(folder, sizeof folder, "/tmp/rooflined-choices-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  strcat(folder, "/cache"); /* made when it is first needed */
  setenv("ROOFLINED_CACHE_DIR", folder, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(choices_outlive_the_process),
                                     cmocka_unit_test(without_a_folder_they_do_not), cmocka_unit_test(processes_see_each_other_s),
                                     cmocka_unit_test(a_damaged_file_is_passed_over), cmocka_unit_test(there_is_an_end_to_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
