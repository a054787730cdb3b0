/* Processes a call (call.h) in three steps: checks the headers, collects the body, then runs the handler or replies with a
 * problem document. */
#ifndef RL_API_DISPATCH_H
#define RL_API_DISPATCH_H

#include "api/call.h"

/* Checks the Host and Origin headers, finds the route, and checks the authorization and the declared type and size of the body.
 * If it refuses the call, sets call->refused and call->err. */
void rl_dispatch_headers(rl_call *call);
/* Appends data to the body. Refuses the call if the body exceeds its limit. */
void rl_dispatch_body(rl_call *call, const char *data, size_t size);
/* Runs the handler, or replies with a problem document if the call was refused. Returns MHD_NO, which closes the connection, if
 * memory is exhausted or the connection accepts no response. */
enum MHD_Result rl_dispatch_end(rl_call *call);

#endif
