/* Processes a request (http_request.h) in stages: checks the headers, authorizes the client, collects the body, then runs the
 * handler or replies with a problem document. server.c calls these functions from MHD's threads. A stage that reads the store
 * runs in a pool (request_pools.h) while the connection is suspended; when the stage has ended, MHD resumes the connection and
 * server.c calls rl_dispatch_continue. If a function returns MHD_NO, MHD closes the connection. */
#ifndef RL_API_DISPATCH_H
#define RL_API_DISPATCH_H

#include "api/http_request.h"

/* Checks the Host and Origin headers, finds the route, and checks the authorization and the declared type and size of the body. A
 * refused request (request->refused, request->err) gets its reply after its body was received and discarded; it gets the reply at
 * once if the client waits for 100 Continue, or if the body is longer than 64 MiB or its end is not known. */
enum MHD_Result rl_dispatch_begin(rl_http_request *request);
/* Appends data to the body. Refuses the request if the body exceeds its limit. */
void rl_dispatch_append_body(rl_http_request *request, const char *data, size_t size);
/* Continues the request after a stage that ran in a pool, or after the end of the body. */
enum MHD_Result rl_dispatch_continue(rl_http_request *request);

#endif
