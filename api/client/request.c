#include "api/client/request.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "api/client/cli.h"
#include "api/client/http.h"
#include "api/client/print.h"

enum { BODY_MAX = 1 << 20, BINARY_MAX = 2 << 20 };
RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

/* Each option is a field of the request with the same name. */
typedef struct option_field {
  const char *name, *field;
  enum { TEXT, NUMBER, LIST, SIZES, FILE_TEXT, FILE_BYTES, NUMBERS, ARGUMENTS, JSON } type;
  const char *value, *summary;
} option_field;

static const option_field options[] = {
    {"--kind", "kind", TEXT, "NAME", "train (default), kernel, source or ceilings"},
    {"--kernel", "kernel", TEXT, "NAME", "measure one kernel, with these four, instead of training"},
    {"--dtype", "dtype", TEXT, "TYPE", "fp64, fp32, tf32, fp16 or bf16"},
    {"--shape", "shape", SIZES, "n=N,…", "sizes of the kernel"},
    {"--variant", "variant", TEXT, "NAME", "default: each that the kernel has"},
    {"--build", "build", TEXT, "NAME", "of a kernel that is built in several ways"},
    {"--code", "code", FILE_TEXT, "FILE", "CUDA C++ of a kernel to run, with these ten"},
    {"--binary", "binary", FILE_BYTES, "FILE", "instead: a cubin, a fatbin or PTX"},
    {"--entry", "entry", TEXT, "NAME", "the kernel in it"},
    {"--grid", "grid", NUMBERS, "X,Y,Z", "blocks"},
    {"--block", "block", NUMBERS, "X,Y,Z", "threads of a block"},
    {"--dynamic-shared-bytes", "dynamic_shared_bytes", NUMBER, "N", "of a block"},
    {"--arguments", "arguments", ARGUMENTS, "ARG,…", "fp32[N] fp32[N]=uniform int32=N"},
    {"--options", "options", LIST, "-lineinfo,…", "of the compiler"},
    {"--variants", "variants", JSON, "JSON|FILE", "[{},{\"fast_math\":true}]: a run for each"},
    {"--model", "model", SIZES, "bytes=N,…", "least bytes and operations of a launch"},
    {"--expected", "expected", JSON, "JSON|FILE", "{\"argument\":0,\"values\":\"base64\"}"},
    {"--samples", "samples", NUMBER, "N", "launches to time, cold and warm"},
    {"--precisions", "precisions", LIST, "fp32,fp16", "a run for each: fp32 tf32 fp16"},
    {"--epochs", "epochs", NUMBER, "N", "measured epochs"},
    {"--warmup-epochs", "warmup_epochs", NUMBER, "N", "epochs before them"},
    {"--batch-size", "batch_size", NUMBER, "N", "1 to 8192"},
    {"--learning-rate", "learning_rate", NUMBER, "X", "of Adam"},
    {"--seed", "seed", NUMBER, "N", "of weights and shuffles"},
    {"--max-images", "max_images", NUMBER, "N", "train on the first N images only"},
    {"--engine", "engine", TEXT, "NAME", "auto, or one from the API's description"},
    {"--dataset", "dataset", TEXT, "NAME", "auto, files or synthetic"},
    {"--device", "device", TEXT, "ID", "as `rooflinectl devices` lists them"},
    {"--passes", "passes", LIST, "timing,…", "timing, activity, counters"},
    {"--set", "set", TEXT, "NAME", "of counters: basic, detailed or full"},
    {"--sections", "sections", LIST, "ID,…", "of the report, beside the set"},
    {"--metrics", "metrics", LIST, "NAME,…", "by their raw names, beside the set"},
    {"--kernels", "kernels", TEXT, "PATTERN", "which kernels of a training step to count"},
    {"--launch", "launch", NUMBER, "N", "which of these, from 0"},
    {"--deadline", "deadline_s", NUMBER, "SECONDS", "of the whole job"},
};
enum { OPTIONS = sizeof options / sizeof *options };

void rl_request_help(void) {
  for (int i = 0; i < OPTIONS; i++) {
    char left[48];
    snprintf(left, sizeof left, "%s %s", options[i].name, options[i].value);
    fputs("  ", stdout);
    rl_print_cell(stdout, left, -26);
    printf(" %s\n", options[i].summary);
  }
}

/* A file's bytes, malloc'ed, with a NUL behind them; NULL and err when it can't be read or has more than `most`, whole MiB. */
static char *read_file(const char *file, size_t most, size_t *length, rl_error *err) {
  rl_auto(close_file) FILE *opened = NULL;
  FILE *in = stdin;
  if (strcmp(file, "-") != 0) in = opened = fopen(file, "re");
  if (in == NULL) {
    rl_fail(err, RL_INPUT, 0, "%s: %s", file, strerror(errno));
    return NULL;
  }
  char *bytes = malloc(most + 1);
  *length = bytes != NULL ? fread(bytes, 1, most + 1, in) : 0;
  if (bytes == NULL || ferror(in) || *length > most) {
    if (bytes != NULL && *length > most) rl_fail(err, RL_INPUT, 0, "%s: larger than %zu MiB", file, most >> 20);
    else rl_fail(err, RL_INPUT, 0, "%s: not readable", file);
    free(bytes);
    return NULL;
  }
  bytes[*length] = '\0';
  return bytes;
}

char *rl_request_read(const char *file, rl_error *err) {
  size_t length;
  char *text = read_file(file, BODY_MAX, &length, err);
  if (text == NULL || strlen(text) == length) return text;
  rl_fail(err, RL_INPUT, 0, "%s: not readable as text", file);
  free(text);
  return NULL;
}

static int no_memory(rl_error *err) { return rl_fail(err, RL_SYS, ENOMEM, "no memory for a request"); }

static int add_text(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  return cJSON_AddStringToObject(request, option->field, value) != NULL ? 0 : no_memory(err);
}

static int add_number(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  char *end;
  double parsed = strtod(value, &end);
  if (end == value || *end != '\0') return rl_usage(err, "%s needs a number, not %s", option->name, value);
  cJSON_AddNumberToObject(request, option->field, parsed);
  return 0;
}

/* The first of the items that commas part, malloc'ed (NULL: no memory), and *rest behind it; after the last *rest is NULL. */
static char *next_item(const char **rest) {
  size_t length = strcspn(*rest, ",");
  char *item = strndup(*rest, length);
  *rest = (*rest)[length] == '\0' ? NULL : *rest + length + 1;
  return item;
}

static int add_list(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  while (value != NULL) {
    rl_auto(rl_free_text) char *item = next_item(&value);
    if (item == NULL || !cJSON_AddItemToArray(list, cJSON_CreateString(item))) return no_memory(err);
  }
  return 0;
}

/* "rows=4" or "causal=true" into the object; false: it is neither. */
static bool add_size(cJSON *sizes, char *pair) {
  char *end, *equals = strchr(pair, '=');
  if (equals == NULL) return false;
  *equals = '\0';
  const char *value = equals + 1;
  if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) return cJSON_AddBoolToObject(sizes, pair, *value == 't') != NULL;
  double size = strtod(value, &end);
  return end != value && *end == '\0' && cJSON_AddNumberToObject(sizes, pair, size) != NULL;
}

/* "rows=4,columns=8" */
static int add_sizes(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *sizes = cJSON_AddObjectToObject(request, option->field);
  for (const char *rest = value; rest != NULL;) {
    rl_auto(rl_free_text) char *pair = next_item(&rest);
    if (pair == NULL) return no_memory(err);
    if (!add_size(sizes, pair)) return rl_usage(err, "%s needs sizes like rows=4,columns=8, not %s", option->name, value);
  }
  return 0;
}

/* "128,2" */
static int add_numbers(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  for (const char *at = value;; at++) {
    char *end;
    double parsed = strtod(at, &end);
    if (end == at || (*end != ',' && *end != '\0'))
      return rl_usage(err, "%s needs numbers like 128,2, not %s", option->name, value);
    cJSON_AddItemToArray(list, cJSON_CreateNumber(parsed));
    if (*end == '\0') return 0;
    at = end;
  }
}

/* "fp32[100]", "fp32[100]=range" or "int32=100" as an argument of a kernel; false: it is none of them. */
static bool add_argument(cJSON *list, char *text) {
  char *open = strchr(text, '['), *equals = strchr(text, '='), *end;
  cJSON *argument = cJSON_CreateObject();
  cJSON_AddItemToArray(list, argument);
  cJSON *inner = cJSON_AddObjectToObject(argument, open != NULL ? "buffer" : "scalar");
  if (open == NULL && equals == NULL) return false;
  if (equals != NULL) *equals = '\0';
  if (open != NULL) *open = '\0';
  cJSON_AddStringToObject(inner, "dtype", text);
  const char *number = open != NULL ? open + 1 : equals + 1;
  cJSON_AddNumberToObject(inner, open != NULL ? "count" : "value", strtod(number, &end));
  if (open != NULL && equals != NULL) cJSON_AddStringToObject(inner, "init", equals + 1);
  return end != number && strcmp(end, open != NULL ? "]" : "") == 0;
}

static int add_arguments(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  for (const char *rest = value; rest != NULL;) {
    rl_auto(rl_free_text) char *one = next_item(&rest);
    if (one == NULL) return no_memory(err);
    if (!add_argument(list, one))
      return rl_usage(err, "%s needs arguments like fp32[100]=range,fp32[100],int32=100, not %s", option->name, value);
  }
  return 0;
}

static int add_file(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  rl_auto(rl_free_text) char *text = rl_request_read(value, err);
  return text != NULL ? add_text(request, option, text, err) : -1;
}

/* In base64. */
static int add_bytes(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  size_t length;
  rl_auto(rl_free_text) char *bytes = read_file(value, BINARY_MAX, &length, err);
  if (bytes == NULL) return -1;
  size_t room = sodium_base64_ENCODED_LEN(length, sodium_base64_VARIANT_ORIGINAL);
  rl_auto(rl_free_text) char *text = malloc(room);
  if (text == NULL) return no_memory(err);
  sodium_bin2base64(text, room, (const unsigned char *)bytes, length, sodium_base64_VARIANT_ORIGINAL);
  return add_text(request, option, text, err);
}

/* JSON as it stands there, or in a file. */
static int add_json(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  rl_auto(rl_free_text) char *text = value[0] == '{' || value[0] == '[' ? strdup(value) : rl_request_read(value, err);
  if (text == NULL) return -1;
  cJSON *parsed = cJSON_ParseWithOpts(text, NULL, true);
  if (parsed == NULL) return rl_usage(err, "%s needs JSON like %s", option->name, option->summary);
  return cJSON_AddItemToObject(request, option->field, parsed) ? 0 : no_memory(err);
}

static int add_option(cJSON *request, const char *name, const char *value, rl_error *err) {
  static int (*const adders[])(cJSON *, const option_field *, const char *, rl_error *) = {
      [TEXT] = add_text,        [NUMBER] = add_number,   [LIST] = add_list,           [SIZES] = add_sizes, [FILE_TEXT] = add_file,
      [FILE_BYTES] = add_bytes, [NUMBERS] = add_numbers, [ARGUMENTS] = add_arguments, [JSON] = add_json};
  for (int i = 0; i < OPTIONS; i++) {
    if (strcmp(options[i].name, name) != 0) continue;
    if (value == NULL) return rl_usage(err, "%s needs a value", name);
    if (cJSON_HasObjectItem(request, options[i].field)) return rl_usage(err, "%s was given twice", name);
    return adders[options[i].type](request, &options[i], value, err);
  }
  return rl_usage(err, "run has no option %s; rooflinectl run --help lists them", name);
}

/* Of a request that does not say it. */
static const char *kind_of(const cJSON *request) {
  if (cJSON_HasObjectItem(request, "kernel")) return "kernel";
  return cJSON_HasObjectItem(request, "code") || cJSON_HasObjectItem(request, "binary") ? "source" : "train";
}

int rl_request_from_arguments(int argc, char **argv, char **body, rl_error *err) {
  if (argc == 1 && (argv[0][0] != '-' || argv[0][1] == '\0')) {
    *body = rl_request_read(argv[0], err);
    return *body != NULL ? 0 : -1;
  }
  rl_auto(rl_json_free) cJSON *request = cJSON_CreateObject();
  for (int i = 0; i < argc; i++) {
    char name[64];
    const char *equals = strchr(argv[i], '=');
    snprintf(name, sizeof name, "%.*s", equals != NULL ? (int)(equals - argv[i]) : (int)strlen(argv[i]), argv[i]);
    const char *value = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
    if (add_option(request, name, value, err) < 0) return -1;
  }
  if (!cJSON_HasObjectItem(request, "kind")) cJSON_AddStringToObject(request, "kind", kind_of(request));
  *body = cJSON_PrintUnformatted(request);
  return *body != NULL ? 0 : no_memory(err);
}
