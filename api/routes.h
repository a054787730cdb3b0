/* The table of all routes, and the text of schema/openapi.json, which describes the same routes. */
#ifndef RL_API_ROUTES_H
#define RL_API_ROUTES_H

#include "api/http_request.h"
#include "embedded.h"

extern const rl_route rl_routes[]; /* ends with {0}; the last route, "/{file}", matches every path that no other route matches */
extern const rl_embedded rl_openapi[];

/* Returns the route with this method and path, and sets *values from the path. HEAD matches the route of GET. If there is no such
 * route, returns NULL and sets allow to the methods that the path has; "" when no route has the path. */
const rl_route *rl_route_find(const char *method, const char *path, rl_path_values *values, char *allow, size_t allow_size);
/* Appends a method to the comma-separated list in allow. */
void rl_allow_header_append(char *allow, size_t allow_size, const char *method);

#endif
