/* The token that systemd passes to a unit as the credential "rooflined-token" (LoadCredential=, systemd.exec(5)). */
#ifndef RL_CLIENT_CREDENTIAL_H
#define RL_CLIENT_CREDENTIAL_H

#include <stddef.h>

#include "base/error.h"

/* Reads the first line of $CREDENTIALS_DIRECTORY/rooflined-token into token, without surrounding white space. token is empty if
 * there is no such credential, or if it is blank. Fails with RL_ERRNO if the credential can't be read, or is longer than the
 * buffer. */
int rl_credential_read_token(char *token, size_t size, rl_error *err);

#endif
