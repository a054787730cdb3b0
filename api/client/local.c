/* backup and token: on the state folder itself, whether a daemon runs or not. */
#include <stdio.h>
#include <string.h>

#include "api/token.h"
#include "api/client/cli.h"
#include "config.h"
#include "store/store.h"

/* The state folder as the daemon would find it, or --state DIR; what is left in argv are *count plain arguments. */
static int state_folder(rl_cli *cli, rl_config *config, const char **plain, int capacity, int *count, rl_error *err) {
  char setting[RL_PATH_SIZE + 8];
  const char *overrides[] = {setting};
  int override_count = 0;
  *count = 0;
  for (int i = 0; i < cli->argc; i++) {
    if (strcmp(cli->argv[i], "--state") == 0 && i + 1 < cli->argc) {
      snprintf(setting, sizeof setting, "state=%s", cli->argv[++i]);
      override_count = 1;
    } else if (cli->argv[i][0] == '-' || *count == capacity) {
      return rl_usage(err, "%s is not understood here", cli->argv[i]);
    } else {
      plain[(*count)++] = cli->argv[i];
    }
  }
  return rl_config_load(NULL, overrides, override_count, config, err);
}

int rl_command_backup(rl_cli *cli, rl_error *err) {
  rl_config config;
  const char *file = NULL;
  int count;
  if (state_folder(cli, &config, &file, 1, &count, err) < 0) return -1;
  if (count != 1) return rl_usage(err, "backup needs the name of the file to write");
  if (rl_store_backup(config.state, file, err) < 0) return -1;
  if (cli->json) puts("{}");
  else printf("%s/rooflined.db is backed up as %s\n", config.state, file);
  return RL_EXIT_COMPLETED;
}

int rl_command_token(rl_cli *cli, rl_error *err) {
  rl_config config;
  rl_auto(rl_store_cleanup) rl_store *store = NULL;
  const char *name = "token";
  char token[RL_TOKEN_SIZE], hash[RL_TOKEN_HASH_SIZE];
  int count;
  if (state_folder(cli, &config, &name, 1, &count, err) < 0 || rl_store_open_beside(config.state, &store, err) < 0 ||
      rl_token_make(token, err) < 0 || rl_token_hash(token, hash, err) < 0 || rl_store_token_add(store, name, hash, err) < 0)
    return -1;
  if (cli->json) {
    printf("{\"token\":\"%s\"}\n", token);
  } else {
    fprintf(stderr, "Keep this token: only its hash is stored, and it is not shown again.\n");
    puts(token);
  }
  return RL_EXIT_COMPLETED;
}
