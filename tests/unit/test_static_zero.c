/* absence: what a listing shows that code never does, and which metrics that decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/code/static_zero.h"

/* Of the opcodes, one a word. */
static rl_instruction_classes of(const char *opcodes) {
  rl_disassembly listing = {0};
  rl_error err;
  char text[1024], word[32];
  size_t used = 0;
  int64_t offset = 0;
  for (int length; sscanf(opcodes, "%31s%n", word, &length) == 1; opcodes += length, offset += 16)
    used += (size_t)snprintf(text + used, sizeof text - used, "/*%04x*/ @P0 %s R0 ;\n", (unsigned)offset, word);
  assert_int_equal(rl_disassembly_parse(text, used, &listing, &err), 0);
  rl_instruction_classes absent = rl_absent_classes(&listing);
  rl_disassembly_clear(&listing);
  return absent;
}

#define TEXTURE rl_classes_counted_by("smsp__inst_executed_op_texture.sum")
#define SURFACE rl_classes_counted_by("l1tex__t_sectors_pipe_tex_mem_surface_op_ld.sum")
#define TENSOR rl_classes_counted_by("sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed")
#define ATOMICS rl_classes_counted_by("lts__t_sectors_srcunit_tex_aperture_device_op_red_lookup_miss.sum")
#define TMA rl_classes_counted_by("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum")
#define DISTANT rl_classes_counted_by("l1tex__t_sectors_pipe_lsu_mem_dshared_op_ld.sum")
#define LOCAL rl_classes_counted_by("l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct")

static void what_is_not_in_the_code_is_absent(void **state) {
  (void)state;
  const rl_instruction_classes all = TEXTURE | SURFACE | TENSOR | LOCAL | ATOMICS | TMA | DISTANT;
  static const char plain[] =
      "LDC S2R IMAD LDG.E.U16.CONSTANT HMNMX2 FADD DADD LDS STS BAR.SYNC "
      "REDUX.SUM HFMA2 ATOMS.ADD SHFL.BFLY LDGSTS STG.E EXIT BRA NOP";
  assert_int_equal(of(plain), all);
  const struct {
    const char *code;
    rl_instruction_classes present;
  } cases[] = {{"TEX.SCR.LL EXIT", TEXTURE},
               {"TLD4 EXIT", TEXTURE},
               {"SULD.D.BA EXIT", SURFACE},
               {"SUATOM EXIT", SURFACE | ATOMICS},
               {"HMMA.16816.F32 EXIT", TENSOR},
               {"HGMMA.64x64x16.F32 EXIT", TENSOR},
               {"DMMA.884 EXIT", TENSOR},
               {"UTCQMMA EXIT", TENSOR},
               {"HFMA2.MMA EXIT", TENSOR},
               {"LDL.64 EXIT", LOCAL},
               {"STL EXIT", LOCAL},
               {"LD.E.64 EXIT", LOCAL | DISTANT},
               {"ST.E EXIT", LOCAL | DISTANT},
               {"ATOM.E.ADD EXIT", LOCAL | ATOMICS | DISTANT},
               {"RED.E.ADD EXIT", LOCAL | ATOMICS | DISTANT},
               {"ATOMG.E.CAS EXIT", ATOMICS},
               {"REDG.E.ADD.STRONG.GPU EXIT", ATOMICS},
               {"UTMAREDG EXIT", ATOMICS | TMA | DISTANT},
               {"UTMALDG.2D EXIT", TMA | DISTANT},
               {"UBLKCP.S.G EXIT", TMA | DISTANT},
               {"STAS EXIT", DISTANT},
               {"REDAS EXIT", DISTANT},
               {"SYNCS.ARRIVE.TRANS64 EXIT", DISTANT},
               {"TXQ SUST STL IMMA UTMAREDG", all}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (of(cases[i].code) != (all & ~cases[i].present)) fail_msg("%s: %x", cases[i].code, of(cases[i].code));
}

/* A division's slow path, a device function, a table of jumps. */
static void code_that_goes_elsewhere_may_do_everything(void **state) {
  (void)state;
  static const char *const codes[] = {
      "LDG CALL.REL.NOINC EXIT", "CALL.ABS.NOINC EXIT", "BRX EXIT", "JMX EXIT", "RET.REL.NODEC", ""};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) assert_int_equal(of(codes[i]), 0);
}

static void only_counts_of_such_instructions_are_decided(void **state) {
  (void)state;
  static const char *const counted[] = {
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", /* FP16 goes there too: not 0 in code without tensor
                                                                            instructions (H200) */
      "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
      "l1tex__texin_sm2tex_req_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "l1tex__f_tex2sm_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "lts__t_sectors_srcunit_tex_op_read.sum",
      "lts__t_sectors_srcunit_tex_op_red.avg.peak_sustained",
      "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
      "sm__ops_path_tensor_src_fp16.sum.peak_sustained",
      "smsp__sass_average_data_bytes_per_sector_mem_local_op_ld.max_rate",
      "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
      "smsp__inst_executed.sum",
      "lts__mem_local",
      "sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "sm__throughput.avg.pct_of_peak_sustained_elapsed"};
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
    if (rl_classes_counted_by(counted[i]) != 0) fail_msg("%s", counted[i]);
  const rl_instruction_classes kinds[] = {TEXTURE, SURFACE, TENSOR, LOCAL, ATOMICS, TMA, DISTANT};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    assert_true(kinds[i] != 0 && (kinds[i] & (kinds[i] - 1)) == 0);
    assert_non_null(strstr(rl_static_zero_reason(kinds[i]), "not counted: the code has no "));
    for (size_t j = 0; j < i; j++) assert_int_not_equal(kinds[i], kinds[j]);
  }
  assert_int_equal(rl_classes_counted_by("l1tex__m_xbar2l1tex_read_sectors_mem_texture.sum.pct_of_peak_sustained_elapsed"),
                   TEXTURE);
}

/* --- what was counted all the same ------------------------------------------------------------------------------------- */

typedef struct column {
  char kernel[32];
  bool values; /* or how they compare */
} column;

static size_t read_columns(char *line, column *columns, size_t most) {
  size_t count = 0;
  for (char *name = strsep(&line, ","); name != NULL && count < most; name = strsep(&line, ","), count++) {
    const char *end = strrchr(name, '_');
    columns[count].values = end != NULL && (strcmp(end, "_ours") == 0 || strcmp(end, "_ncu") == 0);
    snprintf(columns[count].kernel, sizeof columns[count].kernel, "%.*s", end != NULL ? (int)(end - name) : 0, name);
  }
  return count;
}

/* What those of the table have; of libraries' kernels nothing is said. */
static rl_instruction_classes present_in(const char *kernel) {
  const struct {
    const char *kernel;
    rl_instruction_classes present;
  } known[] = {{"spilling", LOCAL},
               {"matrix", TENSOR},
               {"atomics", ATOMICS},
               {"reduction", ATOMICS},
               {"texture", TEXTURE},
               {"surface", SURFACE},
               {"gemm", ~(rl_instruction_classes)0},
               {"conv", ~(rl_instruction_classes)0}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].kernel, kernel) == 0) return known[i].present;
  return 0;
}

/* Of kernels on an H200, counted by us and by ncu. */
static void counters_were_0_where_code_lacked_the_instruction(void **state) {
  (void)state;
  enum { COLUMNS = 128 };
  static char line[16 << 10];
  column columns[COLUMNS];
  size_t zeros = 0, others = 0;
  FILE *file = fopen(RL_AGREEMENT, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  line[strcspn(line, "\n")] = '\0';
  size_t count = read_columns(line, columns, COLUMNS);
  while (fgets(line, sizeof line, file) != NULL) {
    char *rest = line, *metric = strsep(&rest, ",");
    rl_instruction_classes deciding = rl_classes_counted_by(metric);
    for (size_t i = 1; deciding != 0 && i < count; i++) {
      char *field = strsep(&rest, ",\n");
      bool has = (present_in(columns[i].kernel) & deciding) != 0;
      if (!columns[i].values || field == NULL || field[0] == '\0') continue;
      if (!has && strtod(field, NULL) != 0) fail_msg("%s of %s is %s", metric, columns[i].kernel, field);
      zeros += !has;
      others += has && strtod(field, NULL) != 0;
    }
  }
  fclose(file);
  print_message("%zu values are 0, %zu of kernels that have the instruction are not\n", zeros, others);
  assert_true(zeros > 2000 && others > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_in_the_code_is_absent),
                                     cmocka_unit_test(code_that_goes_elsewhere_may_do_everything),
                                     cmocka_unit_test(only_counts_of_such_instructions_are_decided),
                                     cmocka_unit_test(counters_were_0_where_code_lacked_the_instruction)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
