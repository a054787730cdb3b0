#include "worker/cupti/spent.h"

#include <stddef.h>

#include "base/clock.h"

static const char *const names[RL_PIECES] = {
    [RL_PIECE_TRACING] = "spent_tracing_ms",           [RL_PIECE_PLANNING] = "spent_planning_ms",
    [RL_PIECE_ENABLING] = "spent_enabling_ms",         [RL_PIECE_RESTORING] = "spent_restoring_ms",
    [RL_PIECE_STARTING] = "spent_starting_ms",         [RL_PIECE_RUNNING] = "spent_running_ms",
    [RL_PIECE_STOPPING] = "spent_stopping_ms",         [RL_PIECE_EVALUATING] = "spent_evaluating_ms",
    [RL_PIECE_INSTRUCTIONS] = "spent_instructions_ms", [RL_PIECE_LINES] = "spent_lines_ms",
    [RL_PIECE_SAMPLES] = "spent_samples_ms",           [RL_PIECE_LISTING] = "spent_listing_ms"};

void rl_spent_begin(rl_spent *spent) { *spent = (rl_spent){.since_ns = rl_monotonic_ns()}; }

void rl_spent_on(rl_spent *spent, rl_piece piece) {
  if (spent == NULL) return;
  int64_t now = rl_monotonic_ns();
  spent->ms[piece] += (double)(now - spent->since_ns) * 1e-6;
  spent->since_ns = now;
}

int rl_spent_measure(const rl_spent *spent, rl_records *records, rl_error *err) {
  for (int piece = 0; piece < RL_PIECES; piece++)
    if (rl_records_measure(records, names[piece], spent->ms[piece], NULL, err) != 0) return -1;
  return 0;
}
