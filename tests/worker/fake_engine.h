/* A workload "fake" with one engine "hand" for the CPU, to test passes and the worker program. A step has two launches, gather
 * and descend, which move one weight from 0 towards 3 by a tenth of the distance, so that losses, counts and bytes are known.
 * Defines rl_workloads and rl_engines.
 *
 *   steps, epochs, warmup   numbers of steps per epoch, of measured and of warm-up epochs
 *   bytes                   size of the activations
 *   evaluates               an evaluation follows each epoch
 *   whole                   one launch runs all steps, and can record phase timestamps of the first four steps in two blocks
 *   sleep_us                microseconds that each gather sleeps
 *   prints                  each gather writes a line to standard output
 *   fail_at, die_at         number of the gather since the reset that fails, or that kills the process; 0: none
 *   once                    one gather fills a buffer, and a gather fails while the buffer is full
 *   restored                the step has a launch that empties the buffer again
 *   error                   relative error that the check reports */
#ifndef RL_TESTS_FAKE_ENGINE_H
#define RL_TESTS_FAKE_ENGINE_H

extern int fake_opened_count, fake_closed_count; /* instances */

#endif
