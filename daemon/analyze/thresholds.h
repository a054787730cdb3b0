/* The thresholds that the roofline, the rules and a kernel's verdict share. Macros, because the rules' expressions are texts that
 * docs/rules.md prints: RL_TEXT(RL_BUSY_PCT) is "60". */
#ifndef RL_ANALYZE_THRESHOLDS_H
#define RL_ANALYZE_THRESHOLDS_H

#define RL_BUSY_PCT 60                /* percent of its peak from which a unit limits a kernel */
#define RL_BALANCED_DIFFERENCE_PCT 10 /* percentage points: if two units differ by less, they are balanced */
/* Percent of its peak from which a unit can do little more work. A copy reaches 81 % on an H200. */
#define RL_SATURATED_PCT 75
#define RL_SHORT_KERNEL_NS 10000 /* in shorter kernels, the start and the end can be a large part of the time */

#define RL_MIN_SAVING_PCT 2 /* percent of the duration; smaller estimates are not reported */

#define RL_TEXT_OF(value) #value
#define RL_TEXT(macro) RL_TEXT_OF(macro)

#endif
