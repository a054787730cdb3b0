/* The steps of a call: check the headers, collect the body, run the handler or reply with a problem document. */
#ifndef RL_API_DISPATCH_H
#define RL_API_DISPATCH_H

#include "api/call.h"

/* Checks where the call comes from, finds its route, and checks its authorization and its declared body. A refusal is kept in the
 * call (refused, err). */
void rl_dispatch_headers(rl_call *call);
/* Appends data to the body. A body beyond the limit refuses the call. */
void rl_dispatch_body(rl_call *call, const char *data, size_t size);
/* Runs the handler, or replies with the problem document of the refusal. MHD_NO closes the connection: memory is out, or the
 * connection takes no response. */
enum MHD_Result rl_dispatch_end(rl_call *call);

#endif
