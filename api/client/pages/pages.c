/* A program of the build that prints a manual page or a shell completion script from the tables of commands and settings. Usage:
 * pages PAGE. PAGE is rooflinectl.1, rooflined.8, rooflined-….8 (for a program that rooflined starts), bash, zsh or fish. */
#include <stdio.h>
#include <string.h>

#include "api/client/cli.h"
#include "api/client/pages/choices.h"
#include "config.h"

/* --- values ------------------------------------------------------------------------------------------------------------ */

static bool is_subcommand(const rl_cli_option *option) { return option->name[0] != '-' && option->option == NULL; }

static bool takes_file(const char *value) { return strstr(value, "FILE") != NULL || strstr(value, "DIR") != NULL; }

static const rl_cli_option *options_of(const rl_command *command) {
  static const rl_cli_option none[] = {{0}};
  return command->options != NULL ? command->options() : none;
}

/* --- bash -------------------------------------------------------------------------------------------------------------- */

/* command NULL: the option belongs to every command. */
static void print_bash_value(const rl_command *command, const rl_cli_option *option) {
  const rl_choices choices = rl_choices_of(command, option);
  if (option->name[0] != '-' || option->value[0] == '\0') return;
  printf("    %s/%s) ", command != NULL ? command->name : "*", option->name);
  if (takes_file(option->value) && choices.words[0] == '\0') puts("COMPREPLY=($(compgen -f -- \"$current\")); return ;;");
  else if (choices.words[0] == '\0') puts("COMPREPLY=(); return ;;");
  else if (choices.is_list) printf("_rooflinectl_list '%s'; return ;;\n", choices.words);
  else printf("COMPREPLY=($(compgen -W '%s' -- \"$current\")); return ;;\n", choices.words);
}

static void print_bash_words(const rl_cli_option *options) {
  for (const rl_cli_option *option = options; option->name != NULL; option++)
    if (option->option == NULL) printf(" %s", option->name);
}

static void print_bash(void) {
  puts(
      "# bash completion of rooflinectl\n"
      "_rooflinectl_list() {\n"
      "  local list=\n"
      "  if [[ $current == *,* ]]; then list=${current%,*},; fi\n"
      "  COMPREPLY=($(compgen -P \"$list\" -W \"$1\" -- \"${current##*,}\"))\n"
      "}\n"
      "_rooflinectl() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words= files= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      --url | --token) ((i++)) ;;\n"
      "      -*) ;;\n"
      "      *) command=${COMP_WORDS[i]}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command/$previous in");
  for (const rl_cli_option *option = rl_common_options; option->name != NULL; option++) print_bash_value(NULL, option);
  for (const rl_command *command = rl_commands; command->name != NULL; command++)
    for (const rl_cli_option *option = options_of(command); option->name != NULL; option++) print_bash_value(command, option);
  fputs("  esac\n  case $command in\n    '') words='", stdout);
  for (const rl_command *command = rl_commands; command->name != NULL; command++) printf(" %s", command->name);
  print_bash_words(rl_common_options);
  puts("' ;;");
  for (const rl_command *command = rl_commands; command->name != NULL; command++) {
    printf("    %s) words='", command->name);
    print_bash_words(options_of(command));
    printf("'%s ;;\n", takes_file(command->arguments) ? " files=1" : "");
  }
  puts(
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  if [[ $files && $current != -* ]]; then COMPREPLY+=($(compgen -f -- \"$current\")); fi\n"
      "}\n"
      "complete -o filenames -F _rooflinectl rooflinectl");
}

/* --- zsh --------------------------------------------------------------------------------------------------------------- */

/* Prints text inside single quotes, with a backslash before the characters of `special`. */
static void print_quoted(const char *text, const char *special) {
  for (; *text != '\0'; text++) {
    if (strchr(special, *text) != NULL) putchar('\\');
    if (*text == '\'') fputs("'\\''", stdout);
    else putchar(*text);
  }
}

static void print_zsh_value(const rl_command *command, const rl_cli_option *option) {
  const rl_choices choices = rl_choices_of(command, option);
  putchar(':');
  print_quoted(option->value, ":\\");
  putchar(':');
  if (takes_file(option->value) && choices.words[0] == '\0') fputs("_files", stdout);
  else if (choices.is_list) printf("_sequence compadd - %s", choices.words);
  else if (choices.words[0] != '\0') printf("(%s)", choices.words);
}

/* command NULL: the option belongs to every command. */
static void print_zsh_option(const rl_command *command, const rl_cli_option *option, const char *indent) {
  if (option->name[0] != '-') return;
  printf("%s'%s[", indent, option->name);
  print_quoted(option->summary, "[]:\\");
  putchar(']');
  if (option->value[0] != '\0') print_zsh_value(command, option);
  puts("' \\");
}

static void print_zsh_command(const rl_command *command) {
  bool has_subcommands = false;
  printf("    %s)\n      _arguments \\\n", command->name);
  for (const rl_cli_option *option = options_of(command); option->name != NULL; option++) {
    print_zsh_option(command, option, "        ");
    has_subcommands |= is_subcommand(option);
  }
  if (has_subcommands) {
    fputs("        '1:command:(", stdout);
    for (const rl_cli_option *option = options_of(command); option->name != NULL; option++)
      if (is_subcommand(option)) printf("%s ", option->name);
    puts(")' ;;");
  } else puts(takes_file(command->arguments) ? "        '*:file:_files' ;;" : "        '*: :' ;;");
}

static void print_zsh(void) {
  puts("#compdef rooflinectl\n_rooflinectl() {\n  local state line\n  local -a commands=(");
  for (const rl_command *command = rl_commands; command->name != NULL; command++) {
    printf("    '%s:", command->name);
    print_quoted(command->summary, ":\\");
    puts("'");
  }
  puts("  )\n  _arguments -C \\");
  for (const rl_cli_option *option = rl_common_options; option->name != NULL; option++) print_zsh_option(NULL, option, "    ");
  puts(
      "    '1: :->command' \\\n    '*:: :->arguments'\n"
      "  if [[ $state == command ]]; then _describe command commands; return; fi\n"
      "  [[ $state == arguments ]] || return\n"
      "  case $words[1] in");
  for (const rl_command *command = rl_commands; command->name != NULL; command++) print_zsh_command(command);
  puts("  esac\n}\n_rooflinectl \"$@\"");
}

/* --- fish -------------------------------------------------------------------------------------------------------------- */

static void print_fish_value(const rl_command *command, const rl_cli_option *option) {
  const rl_choices choices = rl_choices_of(command, option);
  if (takes_file(option->value) && choices.words[0] == '\0') fputs(" -r -F", stdout);
  else fputs(" -x", stdout);
  if (choices.is_list) printf(" -a '(__fish_append , %s)'", choices.words);
  else if (choices.words[0] != '\0') printf(" -a '%s'", choices.words);
}

/* command NULL: the option belongs to every command. */
static void print_fish_option(const char *condition, const rl_command *command, const rl_cli_option *option) {
  if (option->option != NULL) return;
  printf("complete -c rooflinectl%s", condition);
  if (option->name[0] != '-') printf(" -a %s", option->name);
  else printf(" -%c %s", option->name[1] == '-' ? 'l' : 's', option->name + (option->name[1] == '-' ? 2 : 1));
  if (option->name[0] == '-' && option->value[0] != '\0') print_fish_value(command, option);
  fputs(" -d '", stdout);
  for (const char *c = option->summary; *c != '\0'; c++) *c == '\'' ? fputs("\\'", stdout) : putchar(*c);
  puts("'");
}

static void print_fish(void) {
  char condition[96];
  puts("# fish completion of rooflinectl\ncomplete -c rooflinectl -f");
  for (const rl_cli_option *option = rl_common_options; option->name != NULL; option++) print_fish_option("", NULL, option);
  for (const rl_command *command = rl_commands; command->name != NULL; command++) {
    const rl_cli_option itself = {command->name, "", command->summary};
    print_fish_option(" -n __fish_use_subcommand", NULL, &itself);
  }
  for (const rl_command *command = rl_commands; command->name != NULL; command++) {
    snprintf(condition, sizeof condition, " -n '__fish_seen_subcommand_from %s'", command->name);
    for (const rl_cli_option *option = options_of(command); option->name != NULL; option++)
      print_fish_option(condition, command, option);
    if (takes_file(command->arguments)) printf("complete -c rooflinectl%s -F\n", condition);
  }
}

/* --- manual pages ------------------------------------------------------------------------------------------------------ */

/* Prints text and escapes hyphens and backslashes, so that roff prints them unchanged. */
static void print_roff(const char *text) {
  if (*text == '.' || *text == '\'') fputs("\\&", stdout);
  for (; *text != '\0'; text++) {
    if (*text == '-') fputs("\\-", stdout);
    else if (*text == '\\') fputs("\\e", stdout);
    else putchar(*text);
  }
}

static void print_term(const char *bold, const char *rest, const char *summary) {
  fputs(".TP\n\\fB", stdout);
  print_roff(bold);
  fputs("\\fR ", stdout);
  print_roff(rest);
  putchar('\n');
  print_roff(summary);
  putchar('\n');
}

static void print_title(const char *name, int section, const char *purpose) {
  printf(".TH %s %d \"\" \"rooflined %s\" \"rooflined\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", name, section, RL_VERSION, name,
         purpose);
}

static void print_client_page(void) {
  print_title("rooflinectl", 1, "client of the GPU profiling daemon rooflined");
  puts("\\fBrooflinectl\\fR [\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n.SH DESCRIPTION");
  puts("Submits jobs to \\fBrooflined\\fR(8), follows them, and prints their results.\n.SH OPTIONS");
  for (const rl_cli_option *option = rl_common_options; option->name != NULL; option++)
    print_term(option->name, option->value, option->summary);
  puts(".SH COMMANDS");
  for (const rl_command *command = rl_commands; command->name != NULL; command++)
    print_term(command->name, command->arguments, command->summary);
  for (const rl_command *command = rl_commands; command->name != NULL; command++) {
    if (command->options == NULL) continue;
    printf(".SS Options of %s\n", command->name);
    for (const rl_cli_option *option = options_of(command); option->name != NULL; option++)
      print_term(option->name, option->value, option->summary);
  }
  puts(".SH ENVIRONMENT");
  for (const rl_cli_option *variable = rl_client_variables; variable->name != NULL; variable++)
    print_term(variable->name, "", variable->summary);
  puts(".SH EXIT STATUS");
  for (const rl_cli_option *status = rl_client_statuses; status->name != NULL; status++)
    print_term(status->name, "", status->summary);
  puts(".SH SEE ALSO\n\\fBrooflined\\fR(8)");
}

static void print_setting(const rl_config_key *key) {
  static const char *const values[] = {[RL_KEY_TEXT] = "TEXT", [RL_KEY_INT] = "N", [RL_KEY_BOOL] = "[=BOOL]"};
  char option[64];
  snprintf(option, sizeof option, "--%s", key->name);
  for (char *c = option; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  print_term(option, values[key->type], key->summary);
  if (*key->default_value == '\0') return;
  fputs("(default: ", stdout);
  print_roff(key->default_value);
  puts(")");
}

static void print_daemon_page(void) {
  print_title("rooflined", 8, "GPU profiling daemon with an HTTP API and a database");
  puts("\\fBrooflined\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION");
  puts("Measures jobs on GPUs and CPUs and stores the results in SQLite, behind an HTTP API.\n.SH OPTIONS");
  for (const rl_config_option *option = rl_config_options; option->name != NULL; option++) {
    char name[32];
    snprintf(name, sizeof name, "--%s", option->name);
    print_term(name, option->argument, option->summary);
  }
  puts(".SH SETTINGS\nEvery setting can be given as an option, as an environment variable (ROOFLINED_PORT), or as a line");
  puts("in the section [rooflined] of the file (port = ...).");
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++) print_setting(key);
  puts(".SH FILES\n.TP\n/etc/rooflined/rooflined.conf\nThe settings.\n.SH SEE ALSO\n\\fBrooflinectl\\fR(1)");
}

/* The programs that rooflined starts. */
static const struct {
  const char *page, *name, *purpose;
} started_programs[] = {{"rooflined-worker-cpu.8", "rooflined-worker-cpu", "executes rooflined's jobs on the CPU"},
                        {"rooflined-nvrtc.8", "rooflined-nvrtc", "compiles posted CUDA code for rooflined, in a sandbox"},
                        {"rooflined-import.8", "rooflined-import", "reads uploaded traces for rooflined, in a sandbox"}};
enum { STARTED_PROGRAMS = sizeof started_programs / sizeof *started_programs };

static bool print_started_program(const char *page) {
  int i = 0;
  while (i < STARTED_PROGRAMS && strcmp(started_programs[i].page, page) != 0) i++;
  if (i == STARTED_PROGRAMS) return false;
  print_title(started_programs[i].name, 8, started_programs[i].purpose);
  printf("\\fB%s\\fR\n.SH DESCRIPTION\n", started_programs[i].name);
  puts("\\fBrooflined\\fR(8) starts this program and exchanges frames with it on a pipe. Do not start it by hand.");
  puts(".SH SEE ALSO\n\\fBrooflined\\fR(8)");
  return true;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*print)(void);
  } pages[] = {{"rooflinectl.1", print_client_page},
               {"rooflined.8", print_daemon_page},
               {"bash", print_bash},
               {"zsh", print_zsh},
               {"fish", print_fish}};
  for (size_t i = 0; argc == 2 && i < sizeof pages / sizeof *pages; i++)
    if (strcmp(argv[1], pages[i].name) == 0) return pages[i].print(), fflush(stdout) == 0 ? 0 : 1;
  if (argc == 2 && print_started_program(argv[1])) return fflush(stdout) == 0 ? 0 : 1;
  fputs("pages rooflinectl.1 | rooflined.8 | rooflined-….8 | bash | zsh | fish\n", stderr);
  return 2;
}
