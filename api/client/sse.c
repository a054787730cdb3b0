/* Splits the stream into lines. Stores the fields of an event in the parser until an empty line ends the event. */
#include "api/client/sse.h"

#include <stdio.h>
#include <string.h>

void rl_sse_reset(rl_sse *parser) {
  parser->type[0] = '\0';
  parser->data_length = parser->line_length = 0;
  parser->too_long = false;
}

static void parse_data(rl_sse *parser, const char *value) {
  size_t length = strlen(value);
  if (parser->data_length + length + 2 > sizeof parser->data) {
    parser->too_long = true;
    return;
  }
  memcpy(parser->data + parser->data_length, value, length);
  parser->data_length += length;
  parser->data[parser->data_length++] = '\n';
}

static void parse_field(rl_sse *parser, char *line) {
  char *value = strchr(line, ':');
  if (value == line) return; /* a comment */
  if (value == NULL) value = line + strlen(line);
  else *value++ = '\0';
  if (*value == ' ') value++;
  if (strcmp(line, "data") == 0) parse_data(parser, value);
  else if (strcmp(line, "event") == 0) snprintf(parser->type, sizeof parser->type, "%s", value);
  else if (strcmp(line, "id") == 0) snprintf(parser->id, sizeof parser->id, "%s", value);
}

static void parse_line(rl_sse *parser) {
  if (parser->line_length > 0 && parser->line[parser->line_length - 1] == '\r') parser->line_length--;
  parser->line[parser->line_length] = '\0';
  if (parser->line_length > 0) {
    parse_field(parser, parser->line);
  } else {
    if (parser->data_length > 0 && !parser->too_long) {
      parser->data[parser->data_length - 1] = '\0';
      parser->stopped = !parser->on_event(parser->context, parser->type[0] != '\0' ? parser->type : "message", parser->data);
    }
    rl_sse_reset(parser);
  }
  parser->line_length = 0;
}

bool rl_sse_parse(rl_sse *parser, const char *bytes, size_t count) {
  for (size_t i = 0; i < count && !parser->stopped; i++) {
    if (bytes[i] == '\n') parse_line(parser);
    else if (parser->line_length + 1 < sizeof parser->line) parser->line[parser->line_length++] = bytes[i];
    else parser->too_long = true;
  }
  return !parser->stopped;
}
