/* The words that an option accepts, if they are a closed set. They come from the tables that check the option: those of the
 * client and the fields of the API's requests and queries. */
#ifndef RL_CLIENT_CHOICES_H
#define RL_CLIENT_CHOICES_H

#include "api/client/cli.h"

typedef struct rl_choices {
  char words[1024]; /* separated by spaces; "": the option accepts other values too */
  bool is_list;     /* the option accepts several of the words, separated by commas */
} rl_choices;

rl_choices rl_choices_of(const rl_command *command, const rl_cli_option *option);

#endif
