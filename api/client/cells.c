/* Implements cells.h. */
#include "api/client/cells.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"

enum { LINE_COLUMNS = 80 };

const cJSON *rl_json_at(const cJSON *object, const char *path) {
  while (object != NULL && *path != '\0') {
    char name[64];
    size_t length = strcspn(path, ".");
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    object = cJSON_GetObjectItemCaseSensitive(object, name);
    path += length + (path[length] == '.');
  }
  return object;
}

const char *rl_json_text(const cJSON *object, const char *path) {
  const char *text = cJSON_GetStringValue(rl_json_at(object, path));
  return text != NULL ? text : "";
}

double rl_json_number(const cJSON *object, const char *path) {
  const cJSON *item = rl_json_at(object, path);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* --- numbers ------------------------------------------------------------------------------------------------------------- */

static char *format_number(char *cell, double value, const char *format) {
  if (isnan(value)) snprintf(cell, RL_CELL_SIZE, "—");
  else snprintf(cell, RL_CELL_SIZE, format, value);
  return cell;
}

static char *copy_quantity(char *cell, double value, rl_quantity_text (*format)(double value)) {
  snprintf(cell, RL_CELL_SIZE, "%s", isnan(value) ? "—" : format(value).text);
  return cell;
}

char *rl_format_ms(char *cell, double ms) { return copy_quantity(cell, ms, rl_ms_text); }
char *rl_format_us(char *cell, double us) { return copy_quantity(cell, us, rl_us_text); }

char *rl_format_count(char *cell, double value) {
  if (isnan(value)) return format_number(cell, value, "");
  if (fabs(value) >= 1e21) return format_number(cell, value, "%.3e"); /* more digits than a 64-bit integer */
  if (value > 0 && value < 1)
    return format_number(cell, value, "%.2g"); /* a fraction, such as the launches per step if one launch executes many steps */
  char digits[RL_CELL_SIZE / 2];
  int length = snprintf(digits, sizeof digits, "%.0f", value), used = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') cell[used++] = ' ';
    cell[used++] = digits[i];
  }
  cell[used] = '\0';
  return cell;
}

char *rl_format_bytes(char *cell, double bytes) { return copy_quantity(cell, bytes, rl_bytes_text); }
char *rl_format_percent(char *cell, double ratio) { return format_number(cell, ratio * 100, "%.2f %%"); }
char *rl_format_percentage_points(char *cell, double difference) { return format_number(cell, difference * 100, "%+.2f pt"); }
char *rl_format_factor(char *cell, double ratio) { return format_number(cell, ratio, "%.2f×"); }

char *rl_format_bytes_per_s(char *cell, double bytes_per_s) { return copy_quantity(cell, bytes_per_s, rl_bytes_per_s_text); }
char *rl_format_operations_per_s(char *cell, double operations_per_s) {
  return copy_quantity(cell, operations_per_s, rl_operations_per_s_text);
}

char *rl_format_relative_error(char *cell, double relative) {
  return relative == 0 ? format_number(cell, 0, "%.0f") : format_number(cell, relative, "%.1e");
}

char *rl_format_age(char *cell, double seconds) {
  return seconds < 120      ? format_number(cell, seconds, "%.0f s")
         : seconds < 7200   ? format_number(cell, seconds / 60, "%.0f min")
         : seconds < 172800 ? format_number(cell, seconds / 3600, "%.0f h")
                            : format_number(cell, seconds / 86400, "%.0f days");
}

/* Returns false for the second and later bytes of a character in UTF-8. */
static bool starts_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

static int count_columns(const char *text, size_t length) {
  int columns = 0;
  for (size_t i = 0; i < length; i++) columns += starts_character(text[i]);
  return columns;
}

void rl_print_cell(FILE *out, const char *text, int width) {
  int limit = abs(width), columns = 0;
  size_t bytes = 0, ellipsis_offset = 0; /* ellipsis_offset: offset of the character that the ellipsis replaces */
  const char *ellipsis = "";
  for (; text[bytes] != '\0'; bytes++) {
    if (!starts_character(text[bytes])) continue;
    if (columns == limit - 1) ellipsis_offset = bytes;
    if (columns++ < limit) continue;
    columns = limit, bytes = ellipsis_offset, ellipsis = "…";
    break;
  }
  if (width > 0) fprintf(out, "%*s", limit - columns, "");
  fprintf(out, "%.*s%s", (int)bytes, text, ellipsis);
  if (width < 0) fprintf(out, "%*s", limit - columns, "");
}

void rl_print_number(FILE *out, const char *number, int width) {
  const int padding = width - count_columns(number, strlen(number));
  fprintf(out, "%*s%s", padding > 1 ? padding : 1, "", number);
}

/* Prints "?" instead of control characters. */
static void print_bytes(FILE *out, const char *text, size_t count) {
  for (size_t i = 0; i < count; i++) fputc((unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i], out);
}

void rl_print_name(FILE *out, const char *name) { print_bytes(out, name, strlen(name)); }

/* Returns whether the text begins with the symbol of a unit, which stays on the line of its number. */
static bool begins_with_unit(const char *text) {
  static const char *const units[] = {"%",   "s",    "ns",   "µs",   "ms",   "MB",      "KiB",     "MiB",
                                      "GiB", "kB/s", "MB/s", "GB/s", "TB/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    const size_t length = strlen(units[i]);
    if (strncmp(text, units[i], length) == 0 && !isalnum((unsigned char)text[length])) return true;
  }
  return false;
}

/* Returns the number of bytes of the first word, with a unit after it. */
static size_t word_length(const char *text) {
  const size_t length = strcspn(text, " ");
  return text[length] == ' ' && begins_with_unit(text + length + 1) ? length + 1 + strcspn(text + length + 1, " ") : length;
}

/* Prints words, wrapped at LINE_COLUMNS columns. The first line begins at `column`, further lines at `indent`. */
static void print_words(FILE *out, int indent, int column, const char *text) {
  bool begins_line = true;
  while (*text != '\0') {
    const size_t length = word_length(text);
    const int columns = count_columns(text, length);
    if (!begins_line && column + 1 + columns > LINE_COLUMNS) {
      fprintf(out, "\n%*s", indent, "");
      column = indent;
      begins_line = true;
    }
    if (!begins_line) fputc(' ', out);
    print_bytes(out, text, length);
    column += !begins_line + columns;
    begins_line = false;
    text += length + (text[length] == ' ');
  }
  fputc('\n', out);
}

void rl_print_wrapped(FILE *out, int indent, const char *text) {
  fprintf(out, "%*s", *text != '\0' ? indent : 0, "");
  print_words(out, indent, indent, text);
}

void rl_print_row_name(FILE *out, const char *name, int width) {
  const bool fits = count_columns(name, strlen(name)) <= width;
  if (fits) rl_print_cell(out, name, -width);
  else rl_print_wrapped(out, 0, name), fprintf(out, "%*s", width, "");
}

void rl_print_after_label(FILE *out, int indent, const char *text) { print_words(out, indent, indent, text); }

void rl_print_line(FILE *out, int count) {
  while (count-- > 0) fputs("─", out);
  fputc('\n', out);
}

static bool is_coloured;

void rl_styles_enable(bool enabled) { is_coloured = enabled; }

static const char *const style_codes[] = {
    [RL_STYLE_NONE] = "0", [RL_STYLE_BOLD] = "1", [RL_STYLE_WARNING] = "33", [RL_STYLE_INFO] = "36"};

void rl_print_style(FILE *out, rl_style style) {
  if (is_coloured) fprintf(out, "\033[%sm", style_codes[style]);
}
