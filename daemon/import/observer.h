/* The callback by which a parser reports its progress and asks whether the import was cancelled. */
#ifndef RL_IMPORT_OBSERVER_H
#define RL_IMPORT_OBSERVER_H

#include <stdbool.h>

typedef struct rl_import_observer {
  /* Called many times a second. progress: from 0 to 1. Returns true if the import was cancelled. */
  bool (*cancelled)(void *context, double progress);
  void *context;
} rl_import_observer;

#endif
