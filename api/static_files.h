/* Serves the files of the web page: regular files below the folder of the setting `web`. Links and hidden names are not served.
 * */
#ifndef RL_API_STATIC_FILES_H
#define RL_API_STATIC_FILES_H

#include <stdbool.h>

struct rl_server;

bool rl_static_file_exists(const struct rl_server *server, const char *path);

#endif
