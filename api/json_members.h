/* For files that include base/json_members.h by its earlier path. */
#ifndef RL_API_JSON_MEMBERS_H
#define RL_API_JSON_MEMBERS_H

#include "base/json_members.h"

#endif
