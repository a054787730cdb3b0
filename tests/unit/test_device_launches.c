/* Tests the search for device-side launches in posted binaries: PTX texts, cubins, and fatbins that the tests compose; and which
 * entry of a fatbin is selected for a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <elf.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "source/device_launches.h"
#include "source/fatbin.h"

enum { HEAD_BYTES = 16, ENTRY_HEAD_BYTES = 64, PTX = 1, CUBIN = 2, LZ4 = 0x2000, ZSTD = 0x8000, MAX_BYTES = 1 << 20 };
#define PLAIN_PTX ".version 8.0\n.target sm_90\n.visible .entry k() { ret; }\n"
#define LAUNCHING_PTX ".version 8.0\n.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a);\n"

typedef struct fatbin {
  unsigned char bytes[MAX_BYTES];
  size_t size;
} fatbin;

static fatbin composed;

static void begin_fatbin(void) {
  const uint32_t magic = 0xba55ed50;
  memset(&composed, 0, sizeof composed);
  memcpy(composed.bytes, &magic, 4);
  composed.bytes[4] = 1;
  composed.bytes[6] = HEAD_BYTES;
  composed.size = HEAD_BYTES;
}

/* Appends an entry. Pads the data to a multiple of 8 bytes, as nvcc does. */
static void add_entry(uint16_t kind, uint64_t flags, const void *data, size_t size) {
  unsigned char *head = composed.bytes + composed.size;
  const uint32_t head_bytes = ENTRY_HEAD_BYTES, compressed_bytes = flags != 0 ? (uint32_t)size : 0;
  const uint64_t data_bytes = (size + 7) / 8 * 8;
  memcpy(head, &kind, sizeof kind);
  memcpy(head + 4, &head_bytes, sizeof head_bytes);
  memcpy(head + 8, &data_bytes, sizeof data_bytes);
  memcpy(head + 16, &compressed_bytes, sizeof compressed_bytes);
  memcpy(head + 40, &flags, sizeof flags);
  memcpy(head + ENTRY_HEAD_BYTES, data, size);
  composed.size += ENTRY_HEAD_BYTES + data_bytes;
  const uint64_t body_bytes = composed.size - HEAD_BYTES;
  memcpy(composed.bytes + 8, &body_bytes, sizeof body_bytes);
}

static void add_compressed(uint16_t kind, const void *data, size_t size) {
  static unsigned char compressed[MAX_BYTES];
  const size_t bytes = ZSTD_compress(compressed, sizeof compressed, data, size, 3);
  assert_false(ZSTD_isError(bytes));
  add_entry(kind, ZSTD, compressed, bytes);
}

/* Searches a binary. words: part of the error that is expected; NULL: the binary must be accepted. */
static void assert_result(const void *binary, size_t size, const char *words) {
  rl_error err = {0};
  const int rc = rl_source_refuse_device_launches(binary, size, &err);
  if (words == NULL && rc < 0) fail_msg("refused: %s", err.message);
  if (words == NULL) return;
  if (rc == 0) fail_msg("accepted, but %s was expected", words);
  assert_string_equal(err.json_pointer, "/binary");
  if (strstr(err.message, words) == NULL) fail_msg("\"%s\" has no \"%s\"", err.message, words);
}

static void assert_result_for_composed(const char *words) {
  /* Searches a copy on the heap, so that AddressSanitizer finds reads past its end. */
  unsigned char *copy = malloc(composed.size);
  memcpy(copy, composed.bytes, composed.size);
  assert_result(copy, composed.size, words);
  free(copy);
}

static void launches_in_ptx_and_cubins_are_refused(void **state) {
  (void)state;
  static const char cubin[] =
      "\x7f"
      "ELF...k\0__cuda_syscall_cnpv2LaunchDeviceV2\0",
                    plain[] =
                        "\x7f"
                        "ELF...k\0_Z5childPf\0";
  assert_result(PLAIN_PTX, strlen(PLAIN_PTX), NULL);
  assert_result(LAUNCHING_PTX, strlen(LAUNCHING_PTX), "launches kernels from the device");
  assert_result(plain, sizeof plain, NULL);
  assert_result(cubin, sizeof cubin, "launches kernels from the device");
}

static void fatbins_are_searched(void **state) {
  (void)state;
  static const char plain_cubin[] =
      "\x7f"
      "ELF...k\0";
  begin_fatbin();
  add_entry(CUBIN, 0, plain_cubin, sizeof plain_cubin);
  add_compressed(PTX, PLAIN_PTX, strlen(PLAIN_PTX));
  assert_result_for_composed(NULL);
  add_compressed(PTX, LAUNCHING_PTX, strlen(LAUNCHING_PTX));
  assert_result_for_composed("launches kernels from the device");
  begin_fatbin();
  add_entry(PTX, 0, LAUNCHING_PTX, strlen(LAUNCHING_PTX));
  assert_result_for_composed("launches kernels from the device");
}

/* The name of a launch function stands at each offset around the end of the first 64 KiB chunk. */
static void names_are_found_between_chunks(void **state) {
  enum { CHUNK = 64 << 10, TEXT = 2 * CHUNK };
  (void)state;
  static char text[TEXT];
  static const char name[] = "cudaLaunchDevice";
  for (size_t at = CHUNK - sizeof name - 2; at <= CHUNK + 2; at++) {
    for (size_t i = 0; i < TEXT; i++) text[i] = (char)('a' + i * 7 % 23);
    memcpy(text + at, name, sizeof name - 1);
    begin_fatbin();
    add_compressed(CUBIN, text, TEXT);
    assert_result_for_composed("launches kernels from the device");
  }
}

static void parts_that_cannot_be_searched_are_refused(void **state) {
  (void)state;
  begin_fatbin();
  add_entry(CUBIN, LZ4, "....", 4);
  assert_result_for_composed("LZ4");
  begin_fatbin();
  add_entry(CUBIN, ZSTD, "not zstd", 8);
  assert_result_for_composed("can't be decompressed");
  begin_fatbin();
  add_entry(CUBIN, 0x10000, "....", 4);
  assert_result_for_composed("compression is unknown");
  begin_fatbin();
  add_entry(8, 0, "BC..", 4);
  assert_result_for_composed("neither PTX nor a cubin");
}

static void large_contents_are_refused(void **state) {
  (void)state;
  const size_t size = 65 << 20;
  char *zeros = calloc(1, size);
  begin_fatbin();
  add_compressed(CUBIN, zeros, size);
  assert_result_for_composed("more than 64 MiB");
  begin_fatbin(); /* the limit holds for the entries together */
  for (int i = 0; i < 3; i++) add_compressed(CUBIN, zeros, size / 3);
  assert_result_for_composed("more than 64 MiB");
  begin_fatbin();
  for (int i = 0; i < 2; i++) add_compressed(CUBIN, zeros, size / 3);
  assert_result_for_composed(NULL);
  free(zeros);
}

static void a_second_zstd_frame_is_refused(void **state) {
  (void)state;
  static unsigned char frames[2 * ZSTD_COMPRESSBOUND(256)];
  size_t size = ZSTD_compress(frames, sizeof frames, PLAIN_PTX, strlen(PLAIN_PTX), 1);
  begin_fatbin();
  add_entry(PTX, ZSTD, frames, size);
  assert_result_for_composed(NULL);
  size += ZSTD_compress(frames + size, sizeof frames - size, LAUNCHING_PTX, strlen(LAUNCHING_PTX), 1);
  begin_fatbin();
  add_entry(PTX, ZSTD, frames, size);
  assert_result_for_composed("can't be decompressed");
}

/* Searches every prefix of a fatbin, first with a header that states the length of the whole, then with one that states the
 * length of the prefix. No read may go past the end. */
static void truncated_fatbins_are_refused(void **state) {
  (void)state;
  begin_fatbin();
  add_compressed(PTX, PLAIN_PTX, strlen(PLAIN_PTX));
  add_compressed(PTX, PLAIN_PTX, strlen(PLAIN_PTX));
  const size_t whole_bytes = composed.size, second_entry_offset = HEAD_BYTES + (whole_bytes - HEAD_BYTES) / 2;
  for (composed.size = HEAD_BYTES + 1; composed.size < whole_bytes; composed.size++) {
    const uint64_t body_bytes = composed.size - HEAD_BYTES, true_bytes = whole_bytes - HEAD_BYTES;
    memcpy(composed.bytes + 8, &true_bytes, sizeof true_bytes);
    assert_result_for_composed("malformed");
    memcpy(composed.bytes + 8, &body_bytes, sizeof body_bytes);
    assert_result_for_composed(composed.size == second_entry_offset ? NULL : "malformed");
  }
}

/* The entry that was appended last is for this architecture, or only for it (sm_90a). */
static void set_architecture(size_t entry_offset, uint32_t architecture, bool only) {
  uint64_t flags;
  memcpy(composed.bytes + entry_offset + 28, &architecture, sizeof architecture);
  memcpy(&flags, composed.bytes + entry_offset + 40, sizeof flags);
  if (only) flags |= 0x100000;
  memcpy(composed.bytes + entry_offset + 40, &flags, sizeof flags);
}

static const Elf64_Ehdr cubin_header = {
    .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64}, .e_machine = 190, .e_shoff = sizeof(Elf64_Ehdr), .e_phoff = sizeof(Elf64_Ehdr)};

/* Appends an entry whose contents end with the digit. */
static void add_numbered(uint16_t kind, uint32_t architecture, bool only, char digit, bool compressed) {
  char text[128] = PLAIN_PTX;
  const size_t offset = composed.size, length = kind == PTX ? strlen(PLAIN_PTX) + 1 : sizeof cubin_header + 1;
  if (kind == CUBIN) memcpy(text, &cubin_header, sizeof cubin_header);
  text[length - 1] = digit;
  if (compressed) add_compressed(kind, text, length);
  else add_entry(kind, 0, text, length);
  set_architecture(offset, architecture, only);
}

/* Returns the digit of the selected entry; 0: none. */
static char selected_for(int architecture) {
  unsigned char *data = NULL;
  size_t size = 0;
  rl_error err = {0};
  if (rl_fatbin_select(composed.bytes, composed.size, architecture, &data, &size, &err) < 0) {
    assert_string_equal(err.json_pointer, "/binary");
    return 0;
  }
  assert_int_equal(data[size], 0);
  while (data[size - 1] == '\0') size--; /* the padding of the entry */
  const char found = (char)data[size - 1];
  free(data);
  return found;
}

static void the_entry_for_the_device_is_selected(void **state) {
  (void)state;
  begin_fatbin();
  assert_int_equal(selected_for(90), 0);
  add_numbered(PTX, 80, false, '1', true);
  assert_int_equal(selected_for(90), '1');
  assert_int_equal(selected_for(75), 0);
  add_numbered(CUBIN, 80, false, '2', false);
  assert_int_equal(selected_for(86), '2'); /* the same major architecture */
  assert_int_equal(selected_for(90), '1'); /* another one */
  add_numbered(PTX, 90, true, '3', true);
  assert_int_equal(selected_for(90), '3');
  assert_int_equal(selected_for(100), '1'); /* compute_90a runs on 9.0 only */
  add_numbered(CUBIN, 90, false, '4', true);
  assert_int_equal(selected_for(90), '4');
  add_numbered(CUBIN, 90, true, '5', false);
  assert_int_equal(selected_for(90), '5');
  add_numbered(CUBIN, 86, false, '6', true);
  assert_int_equal(selected_for(80), '2');
  assert_int_equal(selected_for(89), '6');
  composed.bytes[composed.size - 9] ^= 0xff; /* damages the compressed entry */
  assert_int_equal(selected_for(89), 0);
}

/* Selects the entry of a fatbin with this entry only. words: part of the error that is expected; NULL: none. */
static void assert_selection(uint16_t kind, bool compressed, const void *contents, size_t size, const char *words) {
  unsigned char *data = NULL;
  rl_error err = {0};
  begin_fatbin();
  if (compressed) add_compressed(kind, contents, size);
  else add_entry(kind, 0, contents, size);
  set_architecture(HEAD_BYTES, 90, false);
  assert_int_equal(rl_fatbin_select(composed.bytes, composed.size, 90, &data, &size, &err), words == NULL ? 0 : -1);
  free(data);
  if (words == NULL) return;
  assert_string_equal(err.json_pointer, "/binary");
  if (strstr(err.message, words) == NULL) fail_msg("\"%s\" has no \"%s\"", err.message, words);
}

static void an_incomplete_entry_is_not_selected(void **state) {
  (void)state;
  static const char INCOMPLETE[] = "not a complete ELF image", magic[8] = "\177ELF";
  struct {
    Elf64_Ehdr header;
    Elf64_Shdr section;
    Elf64_Phdr segment;
  } cubin = {.header = cubin_header};
  assert_selection(CUBIN, false, magic, sizeof magic, INCOMPLETE);
  assert_int_equal(composed.size, 88);
  for (int compressed = 0; compressed < 2; compressed++) {
    assert_selection(CUBIN, compressed, &cubin_header, sizeof cubin_header - 8, INCOMPLETE);
    assert_selection(CUBIN, compressed, &cubin_header, sizeof cubin_header, NULL);
    assert_selection(PTX, compressed, PLAIN_PTX, strlen(PLAIN_PTX), NULL);
  }
  assert_selection(PTX, true, "\177ELF is not PTX", 16, "no .version");
  cubin.header.e_shentsize = sizeof cubin.section;
  cubin.header.e_phentsize = sizeof cubin.segment;
  cubin.header.e_shnum = cubin.header.e_phnum = 1;
  cubin.header.e_phoff = sizeof cubin.header + sizeof cubin.section;
  assert_selection(CUBIN, false, &cubin, sizeof cubin, NULL);
  assert_selection(CUBIN, false, &cubin, sizeof cubin - 8, INCOMPLETE); /* the program header table ends after the image */
  cubin.header.e_phoff = sizeof cubin.header;
  cubin.header.e_shoff = sizeof cubin - sizeof cubin.section;
  assert_selection(CUBIN, false, &cubin, sizeof cubin, NULL);
  assert_selection(CUBIN, false, &cubin, sizeof cubin - 8, INCOMPLETE); /* the section header table does */
  cubin.header.e_machine = EM_X86_64;
  assert_selection(CUBIN, false, &cubin, sizeof cubin, INCOMPLETE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_entry_for_the_device_is_selected),
                                     cmocka_unit_test(an_incomplete_entry_is_not_selected),
                                     cmocka_unit_test(launches_in_ptx_and_cubins_are_refused),
                                     cmocka_unit_test(fatbins_are_searched),
                                     cmocka_unit_test(names_are_found_between_chunks),
                                     cmocka_unit_test(parts_that_cannot_be_searched_are_refused),
                                     cmocka_unit_test(large_contents_are_refused),
                                     cmocka_unit_test(a_second_zstd_frame_is_refused),
                                     cmocka_unit_test(truncated_fatbins_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
