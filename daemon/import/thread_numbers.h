/* Numbers the threads of a trace whose ids in the file are not thread ids of Linux: texts, 0, and numbers below 0 or above
 * 2³¹ − 1. While the file is read, such a thread has a provisional number, which is above all thread ids. At the end it gets the
 * smallest number that no other thread of the trace has. */
#ifndef RL_IMPORT_THREAD_NUMBERS_H
#define RL_IMPORT_THREAD_NUMBERS_H

#include "model/records.h"

enum { RL_MAX_THREAD_ID = INT32_MAX, RL_MAX_NUMBERED_THREADS = 100000 };

typedef struct rl_thread_key { /* identifies a thread by hashes of the texts of its process and its thread. 0: no text */
  uint64_t process, thread;
} rl_thread_key;

typedef struct rl_thread_numbers rl_thread_numbers;
rl_thread_numbers *rl_thread_numbers_new(void); /* NULL: out of memory */
void rl_thread_numbers_free(rl_thread_numbers *threads);
/* Sets *number to the provisional number of the thread. Fails with RL_INPUT if there are more than RL_MAX_NUMBERED_THREADS
 * threads. */
int rl_thread_numbers_find(rl_thread_numbers *threads, rl_thread_key key, uint32_t *number, rl_error *err);
/* Replaces the provisional numbers in the rows, in the order in which the threads occur. Fails with RL_ERRNO if memory is
 * exhausted. */
int rl_thread_numbers_replace(const rl_thread_numbers *threads, rl_activity_row *rows, size_t count, rl_error *err);

#endif
