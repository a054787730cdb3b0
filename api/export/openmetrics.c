/* A chunk source (chunked_reply.h) for the format openmetrics, OpenMetrics 1.0
 * (https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md). Values are converted to base units such as
 * seconds, and names end with the base unit, as the format requires. A value that was not measured has no sample. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/export/byte_buffer.h"
#include "api/export/formats.h"
#include "base/metric_unit.h"

enum { CHUNK_BYTES = 32 << 10, MAX_WORDS = 16 };

/* A unit in the names of measurements. */
typedef struct base_unit {
  const char *word, *base; /* "ms" "seconds" */
  int exponent;            /* the unit is 10^exponent base units */
} base_unit;
static const base_unit units[] = {{"ms", "seconds", -3}, {"us", "seconds", -6}, {"ns", "seconds", -9}, {"mhz", "hertz", 6},
                                  {"w", "watts", 0},     {"c", "celsius", 0},   {"bytes", "bytes", 0}, {"ratio", "ratio", 0}};

typedef struct metric_family {
  char name[160];        /* "rooflined_epoch_median_seconds" */
  const base_unit *unit; /* unit of the measurement; NULL: the name contains no unit of the table */
} metric_family;

typedef struct openmetrics_export {
  rl_cursor *cursor;
  rl_buffer out;
  char last_name[RL_NAME_SIZE * 2]; /* name of the measurement that was written last; `family` is its family */
  metric_family family;
  bool is_done;
} openmetrics_export;

static const base_unit *find_unit(const char *word) {
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(units[i].word, word) == 0) return &units[i];
  return NULL;
}

static void append_word(metric_family *family, const char *word) {
  size_t used = strlen(family->name);
  snprintf(family->name + used, sizeof family->name - used, "_%s", word);
}

/* Converts the name of a measurement: "time_cold_us_median" to "rooflined_time_cold_median_seconds", "images_per_s" to
 * "rooflined_images_per_second". */
static metric_family family_of(const char *measurement) {
  metric_family made = {.name = "rooflined"};
  char words[RL_NAME_SIZE * 2], *rest = NULL;
  const char *previous = "", *unit_word = rl_metric_unit_word(measurement);
  const base_unit *unit = unit_word != NULL ? find_unit(unit_word) : NULL;
  snprintf(words, sizeof words, "%s", measurement);
  for (char *word = strtok_r(words, "_", &rest); word != NULL; previous = word, word = strtok_r(NULL, "_", &rest)) {
    if (strcmp(word, "s") == 0 && strcmp(previous, "per") == 0) append_word(&made, "second");
    else if (unit != NULL && made.unit == NULL && strcmp(word, unit->word) == 0) made.unit = unit;
    else append_word(&made, word);
  }
  if (made.unit != NULL) append_word(&made, made.unit->base);
  return made;
}

static void put_label_value(rl_buffer *out, const char *text) {
  rl_buffer_byte(out, '"');
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') rl_buffer_byte(out, '\\');
    rl_buffer_byte(out, *text);
  }
  rl_buffer_byte(out, '"');
}

static void put_label(rl_buffer *out, const char *separator, const char *name, const char *value) {
  if (value == NULL) return;
  rl_buffer_text(out, separator);
  rl_buffer_text(out, name);
  rl_buffer_byte(out, '=');
  put_label_value(out, value);
}

static void put_family(openmetrics_export *export, const char *measurement) {
  rl_buffer *out = &export->out;
  export->family = family_of(measurement);
  snprintf(export->last_name, sizeof export->last_name, "%s", measurement);
  const char *const parts[] = {"# TYPE ", export->family.name, " gauge\n"};
  for (size_t i = 0; i < 3; i++) rl_buffer_text(out, parts[i]);
  if (export->family.unit != NULL) {
    const char *const unit_parts[] = {"# UNIT ", export->family.name, " ", export->family.unit->base, "\n"};
    for (size_t i = 0; i < 5; i++) rl_buffer_text(out, unit_parts[i]);
  }
  const char *const help_parts[] = {"# HELP ", export->family.name, " The measurement ", measurement, ".\n"};
  for (size_t i = 0; i < 5; i++) rl_buffer_text(out, help_parts[i]);
}

/* Writes the value in base units by appending the unit's exponent ("1.5e-3"), so that no digit is rounded. */
static void put_value(rl_buffer *out, double value, const base_unit *unit) {
  char text[40];
  int exponent = 0, length = 0;
  for (int digits = 15; length == 0 || (digits <= 17 && strtod(text, NULL) != value); digits++)
    length = snprintf(text, sizeof text, "%.*g", digits, value);
  if (unit != NULL && unit->exponent != 0) {
    char *mark = strchr(text, 'e');
    if (mark != NULL) exponent = atoi(mark + 1), length = (int)(mark - text);
    snprintf(text + length, sizeof text - (size_t)length, "e%d", exponent + unit->exponent);
  }
  rl_buffer_text(out, text);
}

static void put_sample(openmetrics_export *export) {
  static const struct {
    const char *name;
    int column;
  } labels[] = {{"pass", 3}, {"workload", 4}, {"variant", 5}, {"device", 6}, {"device_name", 7}, {"commit", 8}};
  rl_buffer *out = &export->out;
  char run[24];
  snprintf(run, sizeof run, "%lld", (long long)rl_cursor_integer(export->cursor, 2));
  rl_buffer_text(out, export->family.name);
  put_label(out, "{", "run", run);
  for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
    put_label(out, ",", labels[i].name, rl_cursor_text(export->cursor, labels[i].column));
  rl_buffer_text(out, "} ");
  put_value(out, rl_cursor_real(export->cursor, 1), export->family.unit);
  rl_buffer_byte(out, '\n');
}

static int next_chunk(void *context, rl_chunk *chunk, rl_error *err) {
  openmetrics_export *export = context;
  const char *name;
  export->out.length = 0;
  if (export->is_done) return 0;
  while (!export->is_done && export->out.length < CHUNK_BYTES) {
    int found = rl_cursor_next(export->cursor, &name, err);
    if (found < 0) return -1;
    export->is_done = found == 0;
    if (export->is_done) rl_buffer_text(&export->out, "# EOF\n");
    else {
      if (strcmp(name, export->last_name) != 0) put_family(export, name);
      put_sample(export);
    }
  }
  *chunk = (rl_chunk){export->out.bytes, export->out.length};
  return rl_buffer_check(&export->out, err) < 0 ? -1 : 1;
}

static void close_export(void *context) {
  openmetrics_export *export = context;
  rl_cursor_close(export->cursor);
  rl_buffer_clear(&export->out);
  free(export);
}

int rl_openmetrics_open(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err) {
  openmetrics_export *export = calloc(1, sizeof *export);
  rl_binding bindings[] = {RL_BIND_INTEGER(":job", target->job),
                           {":run", target->run > 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = target->run}};
  if (export == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an export");
  *source = (rl_chunk_source){next_chunk, close_export, export};
  if (rl_store_query(store, RL_QUERY_EXPORT_MEASUREMENTS, bindings, 2, &export->cursor, err) == 0) return 0;
  close_export(export);
  return -1;
}
