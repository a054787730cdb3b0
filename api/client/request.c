#include "api/client/request.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "api/client/cli.h"
#include "api/client/http.h"

enum { BODY_MAX = 1 << 20 };
RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

/* Each option is a field of the request with the same name. */
typedef struct option_field {
  const char *name, *field;
  enum { TEXT, NUMBER, LIST, SIZES, FILE_TEXT, NUMBERS, ARGUMENTS } type;
  const char *value, *summary;
} option_field;

static const option_field options[] = {
    {"--kind", "kind", TEXT, "NAME", "train (default), kernel, source or ceilings"},
    {"--kernel", "kernel", TEXT, "NAME", "measure one kernel, with these four, instead of training"},
    {"--dtype", "dtype", TEXT, "TYPE", "fp64, fp32, tf32, fp16 or bf16"},
    {"--shape", "shape", SIZES, "n=N,…", "sizes of the kernel"},
    {"--variant", "variant", TEXT, "NAME", "default: each that the kernel has"},
    {"--code", "code", FILE_TEXT, "FILE", "CUDA C++ of a kernel to run, with these five"},
    {"--entry", "entry", TEXT, "NAME", "the kernel in it"},
    {"--grid", "grid", NUMBERS, "X,Y,Z", "blocks"},
    {"--block", "block", NUMBERS, "X,Y,Z", "threads of a block"},
    {"--arguments", "arguments", ARGUMENTS, "ARG,…", "fp32[N] fp32[N]=uniform int32=N"},
    {"--options", "options", LIST, "-lineinfo,…", "of the compiler"},
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
    {"--deadline", "deadline_s", NUMBER, "SECONDS", "of the whole job"},
};
enum { OPTIONS = sizeof options / sizeof *options };

void rl_request_help(void) {
  for (int i = 0; i < OPTIONS; i++) {
    char left[40];
    snprintf(left, sizeof left, "%s %s", options[i].name, options[i].value);
    printf("  %-26s %s\n", left, options[i].summary);
  }
}

char *rl_request_read(const char *file, rl_error *err) {
  rl_auto(close_file) FILE *opened = NULL;
  FILE *in = stdin;
  if (strcmp(file, "-") != 0) in = opened = fopen(file, "re");
  if (in == NULL) {
    rl_fail(err, RL_INPUT, 0, "%s: %s", file, strerror(errno));
    return NULL;
  }
  char *text = malloc(BODY_MAX + 1);
  size_t length = text != NULL ? fread(text, 1, BODY_MAX + 1, in) : 0;
  if (text == NULL || ferror(in) || length > BODY_MAX || memchr(text, '\0', length) != NULL) {
    rl_fail(err, RL_INPUT, 0, "%s: %s", file, length > BODY_MAX ? "larger than 1 MiB" : "not readable as text");
    free(text);
    return NULL;
  }
  text[length] = '\0';
  return text;
}

static int add_number(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  char *end;
  double parsed = strtod(value, &end);
  if (end == value || *end != '\0') return rl_usage(err, "%s needs a number, not %s", option->name, value);
  cJSON_AddNumberToObject(request, option->field, parsed);
  return 0;
}

static void add_list(cJSON *request, const option_field *option, const char *value) {
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  for (;;) {
    size_t length = strcspn(value, ",");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, value);
    cJSON_AddItemToArray(list, cJSON_CreateString(name));
    if (value[length] == '\0') return;
    value += length + 1;
  }
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
  for (;;) {
    size_t length = strcspn(value, ",");
    char pair[64];
    snprintf(pair, sizeof pair, "%.*s", (int)length, value);
    if (!add_size(sizes, pair)) return rl_usage(err, "%s needs sizes like rows=4,columns=8, not %s", option->name, value);
    if (value[length] == '\0') return 0;
    value += length + 1;
  }
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
  for (const char *at = value;; at++) {
    size_t length = strcspn(at, ",");
    char one[64];
    snprintf(one, sizeof one, "%.*s", (int)length, at);
    if (!add_argument(list, one))
      return rl_usage(err, "%s needs arguments like fp32[100]=range,fp32[100],int32=100, not %s", option->name, value);
    at += length;
    if (*at == '\0') return 0;
  }
}

static int add_file(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  rl_auto(rl_free_text) char *text = rl_request_read(value, err);
  return text != NULL && cJSON_AddStringToObject(request, option->field, text) != NULL ? 0 : -1;
}

static int add_option(cJSON *request, const char *name, const char *value, rl_error *err) {
  for (int i = 0; i < OPTIONS; i++) {
    if (strcmp(options[i].name, name) != 0) continue;
    if (value == NULL) return rl_usage(err, "%s needs a value", name);
    if (cJSON_HasObjectItem(request, options[i].field)) return rl_usage(err, "%s was given twice", name);
    if (options[i].type == NUMBER) return add_number(request, &options[i], value, err);
    if (options[i].type == SIZES) return add_sizes(request, &options[i], value, err);
    if (options[i].type == NUMBERS) return add_numbers(request, &options[i], value, err);
    if (options[i].type == ARGUMENTS) return add_arguments(request, &options[i], value, err);
    if (options[i].type == FILE_TEXT) return add_file(request, &options[i], value, err);
    if (options[i].type == LIST) add_list(request, &options[i], value);
    else cJSON_AddStringToObject(request, options[i].field, value);
    return 0;
  }
  return rl_usage(err, "run has no option %s; rooflinectl help lists them", name);
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
  if (!cJSON_HasObjectItem(request, "kind"))
    cJSON_AddStringToObject(request, "kind",
                            cJSON_HasObjectItem(request, "kernel") ? "kernel"
                            : cJSON_HasObjectItem(request, "code") ? "source"
                                                                   : "train");
  *body = cJSON_PrintUnformatted(request);
  return *body != NULL ? 0 : rl_fail(err, RL_SYS, ENOMEM, "no memory for a request");
}
