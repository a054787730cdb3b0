/* Reads members of JSON documents, and prints table cells to a terminal. A missing number is printed as "—", never as zero. */
#ifndef RL_CLIENT_CELLS_H
#define RL_CLIENT_CELLS_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { RL_CELL_SIZE = 64 };

/* rl_json_at returns a member of an object, or NULL if the member is absent. rl_json_text and rl_json_number return the member's
 * value, or "" and NAN if the member is absent, null or of another type. path names nested members: "passes.total". */
const cJSON *rl_json_at(const cJSON *object, const char *path);
const char *rl_json_text(const cJSON *object, const char *path);
double rl_json_number(const cJSON *object, const char *path);

/* Formats a number with its unit into cell[RL_CELL_SIZE]; NAN as "—". Returns cell. */
typedef char *(*rl_cell_format)(char *cell, double value);
char *rl_format_ms(char *cell, double ms);       /* "263.9 ms", "1.06 ms", "18.40 s" */
char *rl_format_us(char *cell, double us);       /* "12.50 µs", "640.0 ns", "-3.62 ms" */
char *rl_format_count(char *cell, double value); /* "227 300": digits in groups of three */
char *rl_format_bytes(char *cell, double bytes); /* "98.2 MiB" */
char *rl_format_percent(char *cell, double ratio);
char *rl_format_percentage_points(char *cell, double ratio_difference); /* "+0.12 pt" */
char *rl_format_factor(char *cell, double ratio);                       /* "1.29×" */
char *rl_format_bytes_per_s(char *cell, double bytes_per_s);            /* "3.91 TB/s", "911.2 GB/s" */
char *rl_format_relative_error(char *cell, double relative);            /* "2.1e-04" */
char *rl_format_operations_per_s(char *cell, double operations_per_s);  /* "60.62 TFLOP/s", "94.7 GFLOP/s" */
char *rl_format_age(char *cell, double seconds);                        /* "12 s", "3 h", "40 days" */

/* Prints text padded to `width` columns (negative: left-aligned). Counts characters, not bytes. Truncates longer text and ends it
 * with "…". */
void rl_print_cell(FILE *out, const char *text, int width);
/* Prints a number right-aligned in `width` columns, after at least one space. Never shortens it. */
void rl_print_number(FILE *out, const char *number, int width);
/* Prints the name of a row in `width` columns. A name that does not fit is printed on the lines before. */
void rl_print_row_name(FILE *out, const char *name, int width);
/* Prints a name that a client chose. Prints "?" instead of control characters, which could change the state of the terminal. */
void rl_print_name(FILE *out, const char *name);
/* Prints text in lines of at most 80 columns, indented by `indent` columns, and ends the last line. Prints "?" instead of control
 * characters. */
void rl_print_wrapped(FILE *out, int indent, const char *text);
/* Like rl_print_wrapped, but the text begins after a label on the current line: only further lines are indented. */
void rl_print_after_label(FILE *out, int indent, const char *text);
/* Sets the style of the following text; RL_STYLE_NONE resets it. Prints nothing unless styles are enabled. */
typedef enum rl_style { RL_STYLE_NONE, RL_STYLE_BOLD, RL_STYLE_WARNING, RL_STYLE_INFO } rl_style;
void rl_print_style(FILE *out, rl_style style);
void rl_styles_enable(bool enabled); /* styles are disabled at first */
/* Prints a horizontal line of `count` columns. */
void rl_print_line(FILE *out, int count);

#endif
