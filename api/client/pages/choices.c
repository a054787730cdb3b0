/* Implements choices.h. */
#include "api/client/pages/choices.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "model/catalogue.h"
#include "model/imported_trace.h"
#include "request/job_kind.h"

static bool has_word(const char *words, const char *word) {
  const size_t length = strlen(word);
  for (const char *found = strstr(words, word); found != NULL; found = strstr(found + 1, word))
    if ((found == words || found[-1] == ' ') && (found[length] == ' ' || found[length] == '\0')) return true;
  return false;
}

static void add_word(rl_choices *choices, const char *word) {
  const size_t used = strlen(choices->words);
  if (has_word(choices->words, word)) return;
  snprintf(choices->words + used, sizeof choices->words - used, "%s%s", used > 0 ? " " : "", word);
}

static void add_words(rl_choices *choices, const char *const *names) {
  for (; *names != NULL; names++) add_word(choices, *names);
}

/* Adds the words of a value such as "true|false". */
static void add_alternatives(rl_choices *choices, const char *value) {
  if (strchr(value, '|') == NULL) return;
  for (const char *c = value; *c != '\0'; c++)
    if (*c != '|' && !islower((unsigned char)*c)) return;
  snprintf(choices->words, sizeof choices->words, "%s", value);
  for (char *c = choices->words; *c != '\0'; c++)
    if (*c == '|') *c = ' ';
}

/* Adds the names of the field, if the table has it. */
static void add_field(rl_choices *choices, const rl_field *fields, const char *name) {
  for (const rl_field *field = fields; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0 && field->names != NULL) {
      add_words(choices, field->names);
      choices->is_list |= field->type == RL_FIELD_CHOICES;
    }
}

/* Adds the names that the requests of all kinds accept in the field of an option of `run`, which has the option's name. */
static void add_request_field(rl_choices *choices, const char *option) {
  char field[64];
  snprintf(field, sizeof field, "%s", option + strspn(option, "-"));
  for (char *c = field; *c != '\0'; c++)
    if (*c == '-') *c = '_';
  for (const rl_job_kind *kind = rl_job_kinds; kind->name != NULL; kind++) {
    rl_request_fields storage;
    if (strcmp(kind->name, RL_IMPORT_KIND) != 0) add_field(choices, rl_job_kind_fields(kind, &storage), field);
  }
}

rl_choices rl_choices_of(const rl_command *command, const rl_cli_option *option) {
  rl_choices choices = {0};
  add_alternatives(&choices, option->value);
  if (choices.words[0] != '\0' || command == NULL || option->value[0] == '\0') return choices;
  for (const rl_cli_option *value = command->options(); value->name != NULL; value++)
    if (value->option != NULL && strcmp(value->option, option->name) == 0) add_word(&choices, value->name);
  if (strcmp(command->name, "run") == 0 && strstr(option->value, "FILE") == NULL) add_request_field(&choices, option->name);
  if (strcmp(command->name, "export") == 0) add_field(&choices, rl_export_job_query, option->name + 2);
  if (strcmp(command->name, "report") == 0 && strcmp(option->name, "--section") == 0) {
    add_words(&choices, rl_section_names);
    add_word(&choices, RL_TIMELINE_SECTION);
  }
  return choices;
}
