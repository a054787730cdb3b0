/* Prints schema/suite.schema.json (scripts/generated.sh). */
#include <stdio.h>
#include <stdlib.h>

#include "suite/definition.h"

int main(void) {
  cJSON *document = cJSON_CreateObject(), *schema = rl_suite_schema();
  cJSON_AddStringToObject(document, "$schema", "https://json-schema.org/draft/2020-12/schema");
  cJSON_AddStringToObject(document, "title", "Regression suite of rooflined");
  while (schema->child != NULL) {
    cJSON *member = cJSON_DetachItemViaPointer(schema, schema->child);
    cJSON_AddItemToObject(document, member->string, member);
  }
  char *text = cJSON_Print(document);
  if (text == NULL || printf("%s\n", text) < 0) return 1;
  free(text);
  cJSON_Delete(schema);
  cJSON_Delete(document);
  return 0;
}
