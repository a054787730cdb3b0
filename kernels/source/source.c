#include "source/source.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "source/parts.h"

enum { BLOCK_MOST = 1024, BLOCK_Z_MOST = 64, GRID_YZ_MOST = 65535 };

const rl_field rl_source_model_fields[] = {
    RL_FIELD(rl_source_model, bytes, RL_FIELD_REAL, .minimum = 0, .maximum = 1e18, .summary = "that one launch must move"),
    RL_FIELD(rl_source_model, operations, RL_FIELD_REAL, .minimum = 0, .maximum = 1e18,
             .summary = "that one launch must do; a fused one is two"),
    {0}};

const rl_field rl_source_fields[] = {RL_SOURCE_FIELDS, {0}};
const rl_source_request rl_source_request_defaults = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

int rl_source_decode_bytes(const char *text, size_t most, const char *at, unsigned char **bytes, size_t *size, rl_error *err) {
  size_t length = strlen(text), room = length / 4 * 3 + 1;
  const char *end = NULL;
  unsigned char *made = malloc(room + 1);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a buffer");
  int rc = sodium_base642bin(made, room, text, length, NULL, size, &end, sodium_base64_VARIANT_ORIGINAL);
  if (rc != 0 || end != text + length || *size == 0 || *size > most) {
    free(made);
    return rc == 0 && *size > most ? rl_fail_at(err, at, "at most %zu bytes can be posted here", most)
                                   : rl_fail_at(err, at, "must be bytes in base64");
  }
  made[*size] = '\0';
  *bytes = made;
  return 0;
}

static int check_launch(const rl_source_request *said, rl_error *err) {
  for (int i = 1; i < 3; i++)
    if (said->grid[i] > GRID_YZ_MOST)
      return rl_fail_at(err, i == 1 ? "/grid/1" : "/grid/2", "grid may be at most %d here", GRID_YZ_MOST);
  if (said->block[2] > BLOCK_Z_MOST) return rl_fail_at(err, "/block/2", "block may be at most %d here", BLOCK_Z_MOST);
  if (said->block[0] * said->block[1] * said->block[2] > BLOCK_MOST)
    return rl_fail_at(err, "/block", "a block has at most %d threads", BLOCK_MOST);
  return 0;
}

static int check_entry(const rl_source_request *said, rl_error *err) {
  const char *allowed = said->code != NULL ? "_$:<>, *&()+-" : "_$.@";
  if (said->entry[0] == '\0') return rl_fail_at(err, "/entry", "entry must name the kernel");
  for (const char *c = said->entry; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c) && strchr(allowed, *c) == NULL)
      return rl_fail_at(err, "/entry", "entry can't have a '%c'", *c);
  return 0;
}

/* A cubin or fatbin that is all there, or text that begins like PTX: the driver is not to read behind its end. */
static bool looks_like_code(const unsigned char *bytes, size_t size) {
  static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (size >= sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr head;
    memcpy(&head, bytes, sizeof head);
    uint64_t sections = (uint64_t)head.e_shentsize * head.e_shnum;
    return head.e_machine == 190 /* EM_CUDA */ && head.e_shoff <= size && sections <= size - head.e_shoff;
  }
  if (size >= 16 && memcmp(bytes, fatbin, sizeof fatbin) == 0) {
    uint16_t head_bytes;
    uint64_t body_bytes;
    memcpy(&head_bytes, bytes + 6, sizeof head_bytes);
    memcpy(&body_bytes, bytes + 8, sizeof body_bytes);
    return head_bytes >= 16 && head_bytes <= size && body_bytes <= size - head_bytes;
  }
  return memchr(bytes, '\0', size) == NULL && strstr((const char *)bytes, ".version") != NULL;
}

static int check_code(const rl_source_request *said, rl_source *source, rl_error *err) {
  if (said->code != NULL && said->binary != NULL) return rl_fail_at(err, "/binary", "post either code or a binary");
  if (said->code == NULL && said->binary == NULL) return rl_fail_at(err, "/code", "code or binary is required");
  if (said->code != NULL) return said->code[0] != '\0' ? 0 : rl_fail_at(err, "/code", "code must not be empty");
  if (said->options != NULL || said->variants != NULL)
    return rl_fail_at(err, said->options != NULL ? "/options" : "/variants",
                      "a binary is compiled already: this belongs to code");
  if (rl_source_decode_bytes(said->binary, RL_SOURCE_BINARY_MAX, "/binary", &source->binary, &source->binary_size, err) < 0)
    return -1;
  if (!looks_like_code(source->binary, source->binary_size))
    return rl_fail_at(err, "/binary", "binary must be a whole cubin, fatbin or PTX text");
  return 0;
}

void rl_source_clear(rl_source *source) {
  for (int i = 0; i < RL_SOURCE_ARGUMENTS; i++) free(source->arguments[i].bytes);
  free(source->binary);
  free(source->expected);
  cJSON_Delete(source->document);
  memset(source, 0, sizeof *source);
}

static int check_model(const cJSON *object, rl_source_model *model, rl_error *err) {
  *model = (rl_source_model){NAN, NAN};
  return object != NULL ? rl_fields_decode(rl_source_model_fields, object, "/model", model, sizeof *model, err) : 0;
}

int rl_source_check(const rl_source_request *request, rl_source *source, rl_error *err) {
  *source = (rl_source){.request = *request};
  if (check_code(request, source, err) == 0 && check_entry(request, err) == 0 && check_launch(request, err) == 0 &&
      rl_source_take_arguments(source, err) == 0 && rl_source_take_variants(source, err) == 0 &&
      check_model(request->model, &source->model, err) == 0 && rl_source_take_expected(source, err) == 0)
    return 0;
  rl_source_clear(source);
  return -1;
}

int rl_source_read(const char *text, size_t length, rl_source *source, rl_error *err) {
  rl_source_request request = rl_source_request_defaults;
  cJSON *document = rl_json_parse(text, length, err);
  if (document == NULL) return -1;
  if (rl_fields_decode(rl_source_fields, document, "", &request, sizeof request, err) < 0 ||
      rl_source_check(&request, source, err) < 0) {
    cJSON_Delete(document);
    return -1;
  }
  source->document = document;
  return 0;
}
