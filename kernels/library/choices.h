/* Choices between algorithms, made by timing (tune.h) and stored in $ROOFLINED_CACHE_DIR/choices.tsv. Other processes (the
 * device's other worker, a later daemon) read them, so that they run the same kernels, get bit-identical results and need no
 * timing. Without the variable, choices last as long as the process. When the file can't be read or written, and after the 4096th
 * choice, the algorithms are timed again. One thread per process. */
#ifndef RL_LIBRARY_CHOICES_H
#define RL_LIBRARY_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the scope of the choices that are found and added from now on: a text with the device and the versions of the libraries.
 * Call it before the other functions. */
void rl_choices_set_scope(const char *scope);
/* Returns the choice stored under this key (operation and shape) in the current scope: an index, whose meaning is the caller's.
 * -1: none. */
int64_t rl_choices_find(const char *key);
/* Adds a choice to the current scope. Does nothing when the key already has a choice. */
void rl_choices_add(const char *key, int64_t choice);
/* True when the choices are stored in the file. */
bool rl_choices_are_persistent(void);
/* Returns why two processes may choose differently and get different results; NULL: they choose the same. */
const char *rl_choices_note(void);

#ifdef __cplusplus
}
#endif
#endif
