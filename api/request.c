/* Reading a request: query parameters through a field table, headers, cursors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/internal.h"
#include "base/clock.h"

const char *rl_call_header(const rl_call *call, const char *name) {
  return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

int rl_call_bad_parameter(rl_call *call, rl_error *err, const char *name, const char *what) {
  char pointer[sizeof err->pointer];
  snprintf(pointer, sizeof pointer, "/%s", name);
  call->parameter = true;
  return rl_fail_at(err, pointer, "%s %s", name, what);
}

bool rl_decimal_parse(const char *text, int64_t *value) {
  int64_t sum = 0;
  if (*text == '\0') return false;
  for (; *text >= '0' && *text <= '9'; text++) {
    sum = sum * 10 + (*text - '0');
    if (sum > INT64_C(1) << 53) return false;
  }
  if (*text != '\0') return false;
  *value = sum;
  return true;
}

typedef struct collected {
  const rl_field *table;
  cJSON *object;
  bool broken; /* a NUL inside a value, or memory is out */
} collected;

/* A parameter as the JSON value that its field wants; text that is no number stays text, which the codec then refuses. */
static cJSON *value_of(const rl_field *table, const char *name, const char *text) {
  for (const rl_field *field = table; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0 && (field->type == RL_FIELD_INT || field->type == RL_FIELD_REAL)) {
      int64_t value;
      bool negative = text[0] == '-';
      if (rl_decimal_parse(text + negative, &value)) return cJSON_CreateNumber((double)(negative ? -value : value));
    }
  return cJSON_CreateString(text);
}

static enum MHD_Result collect(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *text,
                               size_t size) {
  collected *query = context;
  (void)kind;
  if (strlen(name) != name_size || (text != NULL && strlen(text) != size)) query->broken = true;
  cJSON *value = value_of(query->table, name, text != NULL ? text : "");
  if (value == NULL || !cJSON_AddItemToObject(query->object, name, value)) {
    cJSON_Delete(value);
    query->broken = true;
  }
  return MHD_YES;
}

int rl_call_query(rl_call *call, void *out, size_t size, rl_error *err) {
  static const rl_field none[] = {{0}};
  const rl_field *table = call->route->query != NULL ? call->route->query : none;
  rl_auto(rl_json_cleanup) cJSON *object = cJSON_CreateObject();
  collected query = {.table = table, .object = object, .broken = object == NULL};
  if (object != NULL) MHD_get_connection_values_n(call->connection, MHD_GET_ARGUMENT_KIND, collect, &query);
  if (query.broken) return rl_call_bad_parameter(call, err, "", "the query can't be read");
  if (rl_fields_decode(table, object, "", out, size, err) == 0) return 0;
  call->parameter = true;
  return -1;
}

int rl_call_instant(rl_call *call, const char *name, const char *text, int64_t *ns, rl_error *err) {
  if (rl_instant_parse(text, ns) == 0) return 0;
  return rl_call_bad_parameter(call, err, name, "must be an RFC 3339 instant in UTC, as 2026-01-31T12:00:00Z");
}

void rl_page_cursor_format(char letter, int64_t id, char *text) {
  snprintf(text, RL_CURSOR_SIZE, "%c%lld", letter, (long long)id);
}

bool rl_page_cursor_parse(char letter, const char *text, int64_t *id) {
  return text[0] == letter && rl_decimal_parse(text + 1, id) && *id > 0;
}

bool rl_media_is_json(const char *content_type) {
  static const char json[] = "application/json";
  if (content_type == NULL || strncasecmp(content_type, json, sizeof json - 1) != 0) return false;
  const char *rest = content_type + sizeof json - 1;
  rest += strspn(rest, " \t");
  return *rest == '\0' || *rest == ';';
}

bool rl_etag_matches(const char *header, const char *etag) {
  size_t length = strlen(etag);
  while (header != NULL && *header != '\0') {
    header += strspn(header, " \t,");
    if (*header == '*') return true;
    if (strncmp(header, "W/", 2) == 0) header += 2;
    if (strncmp(header, etag, length) == 0 && strchr(" \t,", header[length]) != NULL) return true;
    /* To the end of this member: a comma inside quotes belongs to it. */
    if (*header == '"') {
      const char *quote = strchr(header + 1, '"');
      header = quote != NULL ? quote + 1 : NULL;
    } else {
      header += strcspn(header, ",");
    }
  }
  return false;
}
