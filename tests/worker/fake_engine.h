/* A workload "fake" with one engine "hand" for the CPU: its step is two launches (gather, descend) that move one weight from 0
 * towards 3, a tenth of the way each step, so that losses, counts and bytes are known. It defines rl_workloads and rl_engines.
 * Parameters: steps, epochs, warmup, bytes (of activations), evaluates, whole (all steps are one launch, which can stamp the
 * first four, as two blocks would), nap_us (each gather sleeps), prints (each gather writes to standard output), fail_at and
 * die_at (the n-th gather since the reset fails, or kills the process; 0: none), once (the second gather fails that finds its
 * buffer as the first left it), restored (the step says how that is put back). */
#ifndef RL_TESTS_FAKE_ENGINE_H
#define RL_TESTS_FAKE_ENGINE_H

extern int fake_opened, fake_closed; /* instances */

#endif
