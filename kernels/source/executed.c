/* Implements executed.h. */
#include "source/executed.h"

static bool executed;

void rl_source_set_executed(void) { executed = true; }

bool rl_source_has_executed(void) { return executed; }
