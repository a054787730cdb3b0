/* The thresholds that the roofline, the rules and a kernel's verdict share. Macros, because the rules' expressions are texts that
 * docs/rules.md prints: RL_TEXT(RL_BUSY_PCT) is "60". */
#ifndef RL_ANALYZE_THRESHOLDS_H
#define RL_ANALYZE_THRESHOLDS_H

#define RL_BUSY_PCT 60           /* of its peak: a unit limits a kernel from here on */
#define RL_BALANCED_PCT 10       /* points: compute and memory closer than this are balanced */
#define RL_SATURATED_PCT 75      /* of its peak: little more can be gained from the same unit; a copy reaches 81 on an H200 */
#define RL_SHORT_KERNEL_NS 10000 /* below, a launch costs about as much as the kernel */

#define RL_LEAST_SAVING_PCT 2 /* of the duration: smaller estimates are not reported */

#define RL_TEXT_OF(value) #value
#define RL_TEXT(macro) RL_TEXT_OF(macro)

#endif
