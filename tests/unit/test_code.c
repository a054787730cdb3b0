/* Tests the reader of cubins, also with invalid bytes, and the parser of nvdisasm's output, within limits of time and size. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cubin.h"
#include "worker/code/disassembly.h"

static rl_error err;

/* A cubin with two functions: "first" with the code "abc" and "second" with the code "code". */
typedef struct image {
  Elf64_Ehdr header;
  Elf64_Shdr sections[5];       /* none, code, symbols, strings, attributes of the code */
  Elf64_Sym symbols[4];         /* none, a section, first, second */
  unsigned char attributes[16]; /* attribute 3 (two bytes), attribute 5 (four bytes that look like another attribute), barriers */
  char text[8], strings[16];
} image;

static image make_image(void) {
  image elf = {
      .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                 .e_shoff = offsetof(image, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = 5},
      .sections =
          {[1] = {.sh_type = SHT_PROGBITS, .sh_offset = offsetof(image, text), .sh_size = 8},
           [2] = {.sh_type = SHT_SYMTAB, .sh_offset = offsetof(image, symbols), .sh_size = 4 * sizeof(Elf64_Sym), .sh_link = 3},
           [3] = {.sh_type = SHT_STRTAB, .sh_offset = offsetof(image, strings), .sh_size = 16},
           [4] = {.sh_type = 0x70000000, .sh_offset = offsetof(image, attributes), .sh_size = 16, .sh_info = 1}},
      .attributes = {3, 3, 0x02, 0x4c, 4, 5, 4, 0, 2, 0x4c, 9, 0, 2, 0x4c, 16, 0},
      .symbols = {[1] = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION), .st_shndx = 1},
                  [2] = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = 3},
                  [3] =
                      {.st_name = 7, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 4, .st_size = 4}},
      .text = "abc"};
  memcpy(elf.text + 4, "code", 4);
  memcpy(elf.strings, "\0first\0second\0\0\0", 16);
  return elf;
}

/* Finds the function in a copy on the heap, so that a sanitizer detects a read past its end. */
static int find_function_in_copy(const void *bytes, size_t size, const char *name, rl_cubin_function *function) {
  unsigned char *copy = malloc(size > 0 ? size : 1);
  memcpy(copy, bytes, size);
  int found = rl_cubin_find(copy, size, name, function, &err);
  if (found == 0) function->code = (const unsigned char *)bytes + (function->code - copy);
  free(copy);
  return found;
}

static void a_function_is_found_and_hashed(void **state) {
  (void)state;
  image elf = make_image();
  rl_cubin_function function = {0};
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "first", &function), 0);
  assert_int_equal(function.size, 3);
  assert_int_equal(function.symbol_index, 2);
  assert_memory_equal(function.code, "abc", 3);
  assert_string_equal(function.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "second", &function), 0);
  assert_memory_equal(function.code, "code", 4);
  assert_int_equal(function.symbol_index, 3);
}

static void barriers_are_read_from_attributes_or_flags(void **state) {
  (void)state;
  image elf = make_image();
  rl_cubin_function function = {.barriers = 77};
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "second", &function), 0);
  assert_int_equal(function.barriers, 16);
  elf.attributes[12] = 7; /* an unknown format ends the attributes */
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "second", &function), 0);
  assert_int_equal(function.barriers, 0);
  elf.sections[1].sh_flags = 5 << 20 | 6; /* older toolkits store the number of barriers here */
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "second", &function), 0);
  assert_int_equal(function.barriers, 5);
  elf = make_image();
  elf.sections[4].sh_info = 3; /* attributes of another section */
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "second", &function), 0);
  assert_int_equal(function.barriers, 0);
}

static void a_missing_function_is_named(void **state) {
  (void)state;
  image elf = make_image();
  rl_cubin_function function = {.symbol_index = 77};
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "fir", &function), -1);
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "first\0", &function), 0);
  assert_int_equal(find_function_in_copy(&elf, sizeof elf, "firsts", &function), -1);
  assert_non_null(strstr(err.message, "no function firsts"));
  assert_int_equal(find_function_in_copy("PTX text", 8, "first", &function), -1);
  assert_non_null(strstr(err.message, "not a 64-bit ELF image"));
}

static void a_truncated_image_is_refused(void **state) {
  (void)state;
  image elf = make_image();
  rl_cubin_function function;
  for (size_t size = 0; size < sizeof elf - 3; size++) /* the last three bytes of the strings are unused */
    assert_int_equal(find_function_in_copy(&elf, size, "second", &function), -1);
}

/* Lists the variables of a copy on the heap and reads their names. */
static int64_t list_variables_in_copy(const void *bytes, size_t size) {
  rl_cubin_variable variables[4];
  unsigned char *copy = malloc(size > 0 ? size : 1);
  memcpy(copy, bytes, size);
  int64_t count = rl_cubin_list_variables(copy, size, variables, 4, &err);
  for (int64_t i = 0; i < count && i < 4; i++) assert_true(strlen(variables[i].name) < size);
  free(copy);
  return count;
}

/* A cubin with initialized variables of 4 and 8 bytes, 4 bytes of padding between them, and a variable of 4 bytes that is not
 * initialized. */
enum { INIT = 1, GLOBAL, SHARED, SYMBOLS, STRINGS, VARIABLE_SECTIONS };
typedef struct variables_image {
  Elf64_Ehdr header;
  Elf64_Shdr sections[VARIABLE_SECTIONS];
  Elf64_Sym symbols[4]; /* none, a, b, c */
  char contents[16], strings[64];
} variables_image;

static variables_image make_variables_image(void) {
  static const char strings[] = "\0.nv.global.init\0.nv.global\0.nv.shared.k\0a\0b\0c";
  enum { INIT_NAME = 1, GLOBAL_NAME = 17, SHARED_NAME = 28, A = 41, B = 43, C = 45, VARIABLE = SHF_WRITE | SHF_ALLOC };
  const unsigned char object = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
  variables_image elf = {
      .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                 .e_shoff = offsetof(variables_image, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = VARIABLE_SECTIONS,
                 .e_shstrndx = STRINGS},
      .sections = {[INIT] = {INIT_NAME, SHT_PROGBITS, VARIABLE, 0, offsetof(variables_image, contents), 16, 0, 0, 8, 0},
                   [GLOBAL] = {GLOBAL_NAME, SHT_NOBITS, VARIABLE, 0, 0, 4, 0, 0, 4, 0},
                   [SHARED] = {SHARED_NAME, SHT_NOBITS, VARIABLE, 0, 0, 1024, 0, 0, 4, 0},
                   [SYMBOLS] = {0, SHT_SYMTAB, 0, 0, offsetof(variables_image, symbols), 4 * sizeof(Elf64_Sym), STRINGS, 0, 8, 0},
                   [STRINGS] = {0, SHT_STRTAB, 0, 0, offsetof(variables_image, strings), 64, 0, 0, 1, 0}},
      .symbols = {[1] = {B, object, 0, INIT, 8, 8}, [2] = {A, object, 0, INIT, 0, 4}, [3] = {C, object, 0, GLOBAL, 0, 4}}};
  memcpy(elf.strings, strings, sizeof strings);
  return elf;
}

/* Lists the variables of the edited image. words: part of the error that is expected. */
static void assert_edit_is_refused(const variables_image *elf, const char *words) {
  assert_int_equal(list_variables_in_copy(elf, sizeof *elf), -1);
  assert_int_equal(err.domain, RL_INPUT);
  if (strstr(err.message, words) == NULL) fail_msg("\"%s\" has no \"%s\"", err.message, words);
}

static void a_cubin_that_hides_variables_is_refused(void **state) {
  (void)state;
  static const char UNLISTED[] = "belong to no variable", WRITABLE[] = "is writable";
  const variables_image honest = make_variables_image();
  assert_int_equal(list_variables_in_copy(&honest, sizeof honest), 3);
#define EDITED(EDIT, WORDS)              \
  do {                                   \
    variables_image elf = honest;        \
    EDIT;                                \
    assert_edit_is_refused(&elf, WORDS); \
  } while (0)
  EDITED(elf.symbols[1].st_size = 0, UNLISTED);
  EDITED(elf.symbols[2].st_size = 0, UNLISTED);
  EDITED(elf.symbols[3].st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), UNLISTED);
  EDITED(elf.symbols[1].st_size = 4, UNLISTED);
  EDITED(elf.symbols[1].st_size = 16, "not inside its section");
  EDITED(elf.sections[INIT].sh_addralign = 4, UNLISTED); /* which does not explain 4 bytes of padding */
  EDITED((elf.symbols[1].st_value = 12, elf.symbols[1].st_size = 4), UNLISTED);
  EDITED(elf.sections[INIT].sh_name++, WRITABLE);
  EDITED(elf.sections[GLOBAL].sh_name = 0, WRITABLE);
  EDITED((elf.sections[GLOBAL].sh_name = 0, elf.sections[GLOBAL].sh_flags = 0, elf.sections[GLOBAL].sh_type = 0x70000007),
         WRITABLE);
  EDITED(elf.sections[SHARED].sh_type = SHT_PROGBITS, WRITABLE);
  EDITED((elf.sections[SHARED] = elf.sections[SYMBOLS], elf.sections[SHARED].sh_size = 0), "several symbol tables");
}

/* At most 255 bytes are padding, whatever alignment the image states. */
static void padding_is_bounded(void **state) {
  (void)state;
  variables_image elf = make_variables_image();
  elf.sections[GLOBAL].sh_size = 516;
  elf.sections[GLOBAL].sh_addralign = 512;
  elf.symbols[1] = elf.symbols[3];
  elf.symbols[1].st_value = 512;
  elf.symbols[2].st_size = 16;
  elf.symbols[3].st_size = 257;
  assert_int_equal(list_variables_in_copy(&elf, sizeof elf), 3);
  elf.symbols[3].st_size = 256;
  assert_edit_is_refused(&elf, "belong to no variable");
}

/* Overwrites 1, 2, 4 and 8 bytes at each offset, so that fields point past the end. The function need not be found, but every
 * read stays inside the image. */
static void no_field_leads_out_of_the_image(void **state) {
  (void)state;
  static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  for (size_t offset = 0; offset < sizeof(image); offset++)
    for (size_t v = 0; v < sizeof values; v++)
      for (int width = 1; width <= 8 && offset + (size_t)width <= sizeof(image); width *= 2) {
        image elf = make_image();
        rl_cubin_function function;
        memset((char *)&elf + offset, values[v], (size_t)width);
        assert_true(list_variables_in_copy(&elf, sizeof elf) <= 4);
        if (find_function_in_copy(&elf, sizeof elf, "second", &function) == 0)
          assert_true(function.code >= (unsigned char *)&elf && function.code + function.size <= (unsigned char *)(&elf + 1));
      }
}

static const char nvdisasm_output[] =
    "\t.headerflags\t@\"EF_CUDA_TEXMODE_UNIFIED\"\n"
    ".text._Z4reluPK6__halfPS_m:\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
    "        /*0010*/              @!P0 LDG.E.U16.CONSTANT R2, desc[UR4][R2.64]  ;  /* a remark */\n"
    ".L_x_0:\n"
    "        /*0020*/                   BRA `(.L_x_0);\n"
    "        /*00000030*/ { NOP \n"
    "        /*zz*/ NOP ;\n"
    "        /*0040*/\n"
    "        /*00";

static void instructions_are_read(void **state) {
  (void)state;
  rl_disassembly disassembly = {0};
  assert_int_equal(rl_disassembly_parse(nvdisasm_output, strlen(nvdisasm_output), &disassembly, &err), 0);
  assert_int_equal(disassembly.count, 4);
  assert_string_equal(disassembly.items[0].text, "LDC R1, c[0x0][0x28]");
  assert_string_equal(disassembly.items[1].opcode, "LDG.E.U16.CONSTANT");
  assert_string_equal(disassembly.items[1].text, "@!P0 LDG.E.U16.CONSTANT R2, desc[UR4][R2.64]");
  assert_string_equal(disassembly.items[2].text, "BRA `(.L_x_0)");
  assert_string_equal(disassembly.items[2].label, ".L_x_0");
  assert_true(disassembly.items[1].label[0] == '\0' && disassembly.items[3].label[0] == '\0');
  assert_ptr_equal(rl_disassembly_find(&disassembly, 0x30), &disassembly.items[3]);
  assert_string_equal(disassembly.items[3].opcode, "NOP");
  assert_null(rl_disassembly_find(&disassembly, 0x18));
  assert_null(rl_disassembly_find(&disassembly, 0x40));
  rl_disassembly_clear(&disassembly);
  assert_int_equal(rl_disassembly_parse("", 0, &disassembly, &err), 0);
  assert_null(rl_disassembly_find(&disassembly, 0));
}

static void long_instructions_are_truncated(void **state) {
  (void)state;
  char line[600];
  rl_disassembly disassembly = {0};
  int length = snprintf(line, sizeof line, "/*0*/ %0500d ;", 7);
  assert_int_equal(rl_disassembly_parse(line, (size_t)length, &disassembly, &err), 0);
  assert_int_equal(disassembly.count, 1);
  assert_int_equal(strlen(disassembly.items[0].text), sizeof disassembly.items[0].text - 1);
  assert_int_equal(strlen(disassembly.items[0].opcode), sizeof disassembly.items[0].opcode - 1);
  rl_disassembly_clear(&disassembly);
}

static void output_with_two_functions_is_refused(void **state) {
  (void)state;
  static const char both[] = "/*0000*/ NOP ;\n/*0010*/ EXIT ;\n.text.b:\n/*0000*/ NOP ;\n";
  rl_disassembly disassembly = {0};
  assert_int_equal(rl_disassembly_parse(both, strlen(both), &disassembly, &err), -1);
  assert_int_equal(disassembly.count, 0);
}

static char program_path[64]; /* a shell script in place of nvdisasm */

static void write_program(const char *body) {
  FILE *file = fopen(program_path, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\n%s\n", body);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(program_path, 0700), 0);
}

static int run_program(const char *body, rl_disassembly *disassembly) {
  write_program(body);
  rl_disassembler disassembler = {0};
  if (rl_disassembler_start(program_path, "the code\n", 9, 7, &disassembler, &err) != 0) return -1;
  return rl_disassembler_finish(&disassembler, disassembly, &err);
}

static void the_program_gets_the_cubin(void **state) {
  (void)state;
  rl_disassembly disassembly = {0};
  if (run_program("[ \"$(cat \"$5\")\" = 'the code' ] && [ \"$3 $4\" = '-fun 7' ] && echo '/*0010*/ RET.REL ;'", &disassembly) !=
      0)
    fail_msg("%s", err.message);
  assert_int_equal(disassembly.count, 1);
  assert_int_equal(disassembly.items[0].offset, 16);
  assert_string_equal(disassembly.items[0].opcode, "RET.REL");
  rl_disassembly_clear(&disassembly);
}

static void a_failing_program_is_reported(void **state) {
  (void)state;
  rl_disassembly disassembly = {0};
  assert_int_equal(run_program("echo '/*0000*/ NOP ;'; exit 3", &disassembly), -1);
  assert_string_equal(err.message, "nvdisasm exited with 3");
  assert_int_equal(disassembly.count, 0);
}

static void an_endless_program_is_killed(void **state) {
  (void)state;
  rl_disassembly disassembly = {0};
  assert_int_equal(run_program("sleep 100", &disassembly), -1);
  assert_int_equal(err.code, ETIMEDOUT);
  assert_int_equal(run_program("yes '/*0000*/ NOP ;'", &disassembly), -1);
  assert_int_equal(err.code, EFBIG);
}

/* The program ends within its time limit. Its output is read after the limit has passed. */
static void output_can_be_read_after_the_time_limit(void **state) {
  (void)state;
  rl_disassembler disassembler = {0};
  rl_disassembly disassembly = {0};
  write_program("echo '/*0000*/ NOP ;'");
  assert_int_equal(rl_disassembler_start(program_path, "x", 1, 0, &disassembler, &err), 0);
  while (!rl_process_exits_within(&disassembler.process, 0)) usleep(1000);
  disassembler.deadline_ns = 0;
  if (rl_disassembler_finish(&disassembler, &disassembly, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(disassembly.count, 1);
  rl_disassembly_clear(&disassembly);
}

static void several_disassemblers_run_at_once(void **state) {
  (void)state;
  rl_disassembler disassemblers[4] = {{{0}}};
  write_program("sleep 0.1; printf '/*00%x0*/ NOP ;\\n' \"$4\"");
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(rl_disassembler_start(program_path, "x", 1, i, &disassemblers[i], &err), 0);
  for (uint32_t i = 4; i-- > 1;) {
    rl_disassembly disassembly = {0};
    assert_int_equal(rl_disassembler_finish(&disassemblers[i], &disassembly, &err), 0);
    assert_int_equal(disassembly.count, 1);
    assert_int_equal(disassembly.items[0].offset, 16 * i);
    rl_disassembly_clear(&disassembly);
  }
  rl_disassembler_stop(&disassemblers[0]);
  rl_disassembler_stop(&disassemblers[0]); /* has no effect */
  assert_int_equal(disassemblers[0].process.pid, 0);
}

static void an_exit_is_detected_without_waiting(void **state) {
  (void)state;
  rl_disassembler disassembler = {0};
  assert_false(rl_process_exits_within(&disassembler.process, 0));
  write_program("sleep 100");
  assert_int_equal(rl_disassembler_start(program_path, "x", 1, 0, &disassembler, &err), 0);
  assert_false(rl_process_exits_within(&disassembler.process, 0));
  kill(disassembler.process.pid, SIGKILL);
  while (!rl_process_exits_within(&disassembler.process, 0)) usleep(1000);
  rl_disassembler_stop(&disassembler);
}

static void a_missing_program_is_reported(void **state) {
  (void)state;
  rl_disassembler disassembler = {0};
  assert_int_equal(rl_disassembler_start("/nowhere/nvdisasm", "x", 1, 0, &disassembler, &err), -1);
  assert_int_equal(err.code, ENOENT);
  if (access("/usr/local/cuda/bin/nvdisasm", X_OK) == 0) return;
  setenv("PATH", "relative:/nowhere", 1);
  assert_int_equal(rl_disassembler_start(NULL, "x", 1, 0, &disassembler, &err), -1);
  assert_int_equal(err.code, ENOENT);
  assert_non_null(strstr(err.message, "not installed"));
}

static int make_program_folder(void **state) {
  (void)state;
  strcpy(program_path, "/tmp/rooflined-code-XXXXXX");
  if (mkdtemp(program_path) == NULL) return -1;
  strcat(program_path, "/nvdisasm");
  return 0;
}

static int remove_program_folder(void **state) {
  (void)state;
  remove(program_path);
  *strrchr(program_path, '/') = '\0';
  return remove(program_path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_function_is_found_and_hashed),
                                     cmocka_unit_test(barriers_are_read_from_attributes_or_flags),
                                     cmocka_unit_test(a_missing_function_is_named),
                                     cmocka_unit_test(a_truncated_image_is_refused),
                                     cmocka_unit_test(a_cubin_that_hides_variables_is_refused),
                                     cmocka_unit_test(padding_is_bounded),
                                     cmocka_unit_test(no_field_leads_out_of_the_image),
                                     cmocka_unit_test(instructions_are_read),
                                     cmocka_unit_test(long_instructions_are_truncated),
                                     cmocka_unit_test(output_with_two_functions_is_refused),
                                     cmocka_unit_test(the_program_gets_the_cubin),
                                     cmocka_unit_test(a_failing_program_is_reported),
                                     cmocka_unit_test(an_endless_program_is_killed),
                                     cmocka_unit_test(output_can_be_read_after_the_time_limit),
                                     cmocka_unit_test(several_disassemblers_run_at_once),
                                     cmocka_unit_test(an_exit_is_detected_without_waiting),
                                     cmocka_unit_test(a_missing_program_is_reported)};
  return cmocka_run_group_tests(tests, make_program_folder, remove_program_folder);
}
