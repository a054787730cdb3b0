/* Serves the files of the web page: the regular files below the folder of the setting `web`, except links and hidden files. */
#ifndef RL_API_STATIC_FILES_H
#define RL_API_STATIC_FILES_H

#include <stdbool.h>

struct rl_server;

bool rl_static_file_exists(const struct rl_server *server, const char *path);

#endif
