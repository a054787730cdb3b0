/* Choices between implementations, made by timing (tune.h) and kept in $ROOFLINED_CACHE_DIR/choices.tsv. Other processes (the
 * other worker of the device, the next daemon) then run the same kernels, get bit-identical results and open without timing
 * again. Without that variable choices last as long as the process. An unreadable or unwritable file only costs timing again, and
 * so does a choice beyond the 4096th. Called by one thread; processes share the file and see one another's choices. */
#ifndef RL_LIBRARY_CHOICES_H
#define RL_LIBRARY_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets what later choices are valid for: the device and the libraries' versions. To be called first. */
void rl_choices_set_scope(const char *scope);
/* Returns the choice of this key in the current scope; -1: none. */
int64_t rl_choices_find(const char *key);
/* Adds a choice to the current scope. A key that has one keeps it. */
void rl_choices_add(const char *key, int64_t choice);
/* True when choices last beyond this process. */
bool rl_choices_are_persistent(void);
/* Returns why results may differ between processes; NULL: they do not. */
const char *rl_choices_note(void);

#ifdef __cplusplus
}
#endif
#endif
