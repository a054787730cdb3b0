/* Work on the pieces of a kernel's output (kernel.h) with all threads of the host: shared out, cancellable, and with as much
 * memory as threads need for a few pieces each. The check and the CPU engine are made of this. */
#ifndef RL_KERNELS_KERNEL_PIECES_H
#define RL_KERNELS_KERNEL_PIECES_H

#include "kernel/instance.h"
#include "threads.h"

typedef int rl_part(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err);
/* part for all of [0, count), `step` at a time. The first failure ends it and is returned; RL_SYS ECANCELED when the device's
 * observer says so. */
int rl_kernel_share(const rl_kernel_instance *kernel, int64_t count, int64_t step, rl_part *part, void *context, rl_error *err);

/* Elements of one piece, and how many pieces have about so many elements; at least one. */
int64_t rl_kernel_piece_elements(const rl_kernel_instance *kernel);
int64_t rl_kernel_pieces_in(const rl_kernel_instance *kernel, int64_t elements);

typedef struct rl_kernel_room { /* of a thread; grows */
  void *memory;
  size_t bytes;
} rl_kernel_room;

/* Windows of inputs as numbers to compute with. Inputs that every piece needs all of are read once, others piece by piece. */
typedef struct rl_kernel_feed {
  const rl_kernel_instance *kernel;
  size_t number; /* bytes of one: of a float or a double */
  int64_t most;  /* numbers in the windows of pieces that are worked on at once, where they are more than one */
  /* Some elements of an input as such numbers: either into `room`, or where they lie as such already. */
  const void *(*read)(const rl_kernel_instance *kernel, uint32_t input, int64_t start, int64_t count, void *room);
  const void *whole[RL_KERNEL_INPUTS];
  void *whole_room[RL_KERNEL_INPUTS];
  rl_kernel_room *rooms; /* one a thread */
} rl_kernel_feed;

/* kernel, number, most and read are set by the caller. To be closed after a failure too. */
int rl_kernel_feed_open(rl_kernel_feed *feed, rl_error *err);
/* Read the inputs that all pieces need; whenever what `read` reads has changed. */
int rl_kernel_feed_refresh(rl_kernel_feed *feed, rl_error *err);
void rl_kernel_feed_close(rl_kernel_feed *feed);

/* in: the windows of these pieces; out: room for what comes of them. */
typedef void rl_kernel_work(void *context, const void *const *in, int64_t first, int64_t count, void *out);
/* work for [first, first + count), in as many goes as `most` asks for, but for pieces that share a large window; on one
 * thread. */
int rl_kernel_feed_work(rl_kernel_feed *feed, int64_t first, int64_t count, uint32_t thread, rl_kernel_work *work, void *context,
                        rl_error *err);

#endif
