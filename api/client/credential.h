/* Reads the token that systemd passes to a unit as the credential "rooflined-token" (LoadCredential=, systemd.exec(5)). */
#ifndef RL_CLIENT_CREDENTIAL_H
#define RL_CLIENT_CREDENTIAL_H

#include <stddef.h>

#include "base/error.h"

/* Copies the first word of the first line of $CREDENTIALS_DIRECTORY/rooflined-token to token. Sets token to "" if the file does
 * not exist or this line is blank. Fails with RL_ERRNO if the file can't be read, or if the token does not fit into `size`
 * bytes. */
int rl_credential_read_token(char *token, size_t size, rl_error *err);

#endif
