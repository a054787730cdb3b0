/* The token that systemd passes to a unit as the credential "rooflined-token" (LoadCredential=, systemd.exec(5)). */
#ifndef RL_CLIENT_CREDENTIAL_H
#define RL_CLIENT_CREDENTIAL_H

#include <stddef.h>

#include "base/error.h"

/* Reads the first line of $CREDENTIALS_DIRECTORY/rooflined-token into token, without surrounding white space. Empty: there is no
 * such credential, or it is blank. RL_ERRNO: the credential can't be read, or is longer than the buffer. */
int rl_credential_read_token(char *token, size_t size, rl_error *err);

#endif
