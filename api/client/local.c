/* Implements the commands backup and token. They open the state folder themselves, so they work without the daemon. */
#include <stdio.h>
#include <string.h>

#include "api/token.h"
#include "api/client/cli.h"
#include "api/client/http.h"
#include "api/client/cells.h"
#include "api/client/print.h"
#include "config.h"
#include "store/store.h"

/* Loads the daemon's configuration; --state DIR replaces the setting `state`. Stores the other arguments, at most `capacity`, in
 * `positional` and sets *count to their number. */
static int load_config(rl_cli *cli, rl_config *config, const char **positional, int capacity, int *count, rl_error *err) {
  char setting[RL_PATH_SIZE + 8];
  const char *overrides[] = {setting};
  int override_count = 0;
  *count = 0;
  for (int i = 0; i < cli->argc; i++) {
    if (strcmp(cli->argv[i], "--state") == 0 && i + 1 < cli->argc) {
      snprintf(setting, sizeof setting, "state=%s", cli->argv[++i]);
      override_count = 1;
    } else if (cli->argv[i][0] == '-' || *count == capacity) {
      return rl_fail_argument(err, cli->command, cli->argv[i]);
    } else {
      positional[(*count)++] = cli->argv[i];
    }
  }
  return rl_config_load(NULL, overrides, override_count, config, err);
}

int rl_command_backup(rl_cli *cli, rl_error *err) {
  rl_config config;
  const char *file = NULL;
  int count;
  if (load_config(cli, &config, &file, 1, &count, err) < 0) return -1;
  if (count != 1) return rl_fail_usage(err, "backup needs the name of the file to write");
  if (rl_store_backup(config.state, file, err) < 0) return -1;
  if (cli->json) puts("{}");
  else printf("copied %s/rooflined.db to %s\n", config.state, file);
  return RL_EXIT_COMPLETED;
}

static int create_token(rl_cli *cli, rl_store *store, const char *name, rl_error *err) {
  char token[RL_TOKEN_SIZE], hash[RL_TOKEN_HASH_SIZE];
  if (rl_token_generate(token, err) < 0 || rl_token_hash(token, hash, err) < 0) return -1;
  if (rl_store_token_add(store, name, hash, err) < 0) return -1;
  if (cli->json) {
    printf("{\"token\":\"%s\"}\n", token);
  } else {
    fprintf(stderr, "Store this token: the daemon keeps only its hash and can't show it again.\n");
    puts(token);
  }
  return RL_EXIT_COMPLETED;
}

static int read_tokens(rl_store *store, cJSON *items, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *text;
  int more = rl_store_query(store, RL_QUERY_TOKENS, NULL, 0, &cursor, err);
  while (more >= 0 && (more = rl_cursor_next(cursor, &text, err)) > 0) cJSON_AddItemToArray(items, cJSON_Parse(text));
  return more;
}

static int list_tokens(rl_cli *cli, rl_store *store, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *tokens = cJSON_CreateObject();
  cJSON *items = cJSON_AddArrayToObject(tokens, "items");
  const cJSON *token;
  if (read_tokens(store, items, err) < 0) return -1;
  if (cli->json) return rl_print_json(tokens);
  cJSON_ArrayForEach (token, items) {
    rl_print_cell(stdout, rl_json_text(token, "name"), -24);
    printf(" %.19sZ\n", rl_json_text(token, "created_at"));
  }
  return RL_EXIT_COMPLETED;
}

static int revoke_tokens(rl_cli *cli, rl_store *store, const char *name, rl_error *err) {
  int64_t count = 0;
  if (rl_store_token_remove(store, name, &count, err) < 0) return -1;
  if (count == 0) return rl_fail_usage(err, "there is no token %s; `rooflinectl token list` lists them", name);
  if (cli->json) printf("{\"revoked\":%lld}\n", (long long)count);
  else
    printf(
        "Revoked %lld token%s named %s. Sessions and event streams opened with %s end now; a stream without events ends within "
        "15 s.\n",
        (long long)count, count == 1 ? "" : "s", name, count == 1 ? "it" : "them");
  return RL_EXIT_COMPLETED;
}

int rl_command_token(rl_cli *cli, rl_error *err) {
  rl_config config;
  RL_CLEANUP(rl_store_cleanup) rl_store *store = NULL;
  const char *positional[2] = {"token"};
  int count;
  if (load_config(cli, &config, positional, 2, &count, err) < 0) return -1;
  bool list = strcmp(positional[0], "list") == 0, revoke = strcmp(positional[0], "revoke") == 0;
  if (revoke && count < 2)
    return rl_fail_usage(err, "token revoke needs the name of a token; `rooflinectl token list` lists them");
  if (!revoke && count == 2) return rl_fail_argument(err, cli->command, positional[1]);
  if (!list && !revoke && rl_token_check_name(positional[0], err) < 0) return -1;
  if (rl_store_open_shared(config.state, &store, err) < 0) return -1;
  if (list) return list_tokens(cli, store, err);
  return revoke ? revoke_tokens(cli, store, positional[1], err) : create_token(cli, store, positional[0], err);
}
