/* Checks a posted kernel's code, and decodes the other members of the request. */
#include "source/source.h"

#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cubin.h"
#include "base/json.h"
#include "source/base64.h"
#include "source/device_launches.h"
#include "source/fatbin.h"
#include "source/launch_request.h"

const rl_field rl_source_model_fields[] = {
    RL_FIELD(rl_source_model, bytes, RL_FIELD_REAL, .minimum = 0, .maximum = 1e18, .summary = "compulsory bytes of one launch"),
    RL_FIELD(rl_source_model, operations, RL_FIELD_REAL, .minimum = 0, .maximum = 1e18,
             .summary = "operations of one launch; a multiply-add counts as 2"),
    {0}};

const rl_field rl_source_fields[] = {RL_SOURCE_FIELDS, {0}};
const rl_source_request rl_source_request_defaults = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .cluster = {1, 1, 1}};

/* Returns true for PTX text, and for a cubin or fatbin whose headers describe no more bytes than were posted. The entries of a
 * fatbin are checked when one is selected. */
static bool is_complete_binary(const unsigned char *bytes, size_t size) {
  rl_fatbin_head fatbin;
  if (size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0) return rl_cubin_is_complete(bytes, size);
  if (rl_fatbin_read_head(bytes, size, &fatbin)) return rl_fatbin_is_complete(&fatbin, size);
  return memchr(bytes, '\0', size) == NULL && strstr((const char *)bytes, ".version") != NULL;
}

static int check_code(const rl_source_request *request, rl_source *source, rl_error *err) {
  if (request->code != NULL && request->binary != NULL) return rl_fail_at(err, "/binary", "post either code or a binary");
  if (request->code == NULL && request->binary == NULL) return rl_fail_at(err, "/code", "code or binary is required");
  if (request->code != NULL) return request->code[0] != '\0' ? 0 : rl_fail_at(err, "/code", "code must not be empty");
  if (request->options != NULL || request->variants != NULL)
    return rl_fail_at(err, request->options != NULL ? "/options" : "/variants",
                      "a binary is already compiled: options and variants need code");
  if (rl_source_decode_base64(request->binary, RL_SOURCE_BINARY_MAX, "/binary", &source->binary, &source->binary_size, err) < 0)
    return -1;
  if (!is_complete_binary(source->binary, source->binary_size))
    return rl_fail_at(err, "/binary", "binary must be a complete cubin, fatbin or PTX text");
  return rl_source_refuse_device_launches(source->binary, source->binary_size, err);
}

void rl_source_clear(rl_source *source) {
  for (int i = 0; i < RL_SOURCE_ARGUMENTS_MAX; i++) free(source->arguments[i].initial_contents);
  free(source->binary);
  free(source->expected);
  cJSON_Delete(source->document);
  memset(source, 0, sizeof *source);
}

static int decode_model(const cJSON *object, rl_source_model *model, rl_error *err) {
  *model = (rl_source_model){NAN, NAN};
  return object != NULL ? rl_fields_decode(rl_source_model_fields, object, "/model", model, sizeof *model, err) : 0;
}

int rl_source_check(const rl_source_request *request, rl_source *source, rl_error *err) {
  *source = (rl_source){.request = *request};
  if (check_code(request, source, err) < 0 || rl_source_check_launch_request(request, "", err) < 0 ||
      rl_source_decode_arguments(source, err) < 0 || rl_source_decode_variants(source, err) < 0 ||
      decode_model(request->model, &source->model, err) < 0 || rl_source_decode_expected(source, err) < 0) {
    rl_source_clear(source);
    return -1;
  }
  return 0;
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
