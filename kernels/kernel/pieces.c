#include "kernel/pieces.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* --- sharing out ------------------------------------------------------------------------------------------------------- */

typedef struct sharing {
  const rl_kernel_instance *kernel;
  int64_t count, step;
  rl_part *part;
  void *context;
  atomic_bool over;
  rl_error err; /* of who set `over` first */
} sharing;

static void do_part(void *context, uint32_t task, uint32_t thread) {
  sharing *all = context;
  rl_error err = {0};
  if (atomic_load(&all->over)) return;
  const int64_t first = all->step * task, left = all->count - first;
  int rc = thread == 0 ? rl_device_cancelled(all->kernel->base.device, &err) : 0; /* the observer is the device's thread's */
  if (rc == 0) rc = all->part(all->context, first, left < all->step ? left : all->step, thread, &err);
  if (rc < 0 && !atomic_exchange(&all->over, true)) all->err = err;
}

int rl_kernel_share(const rl_kernel_instance *kernel, int64_t count, int64_t step, rl_part *part, void *context, rl_error *err) {
  sharing all = {.kernel = kernel, .count = count, .step = step, .part = part, .context = context};
  rl_threads_run(kernel->threads, (uint32_t)((count + step - 1) / step), do_part, &all);
  if (!atomic_load(&all.over)) return 0;
  if (err) *err = all.err;
  return -1;
}

int64_t rl_kernel_piece_elements(const rl_kernel_instance *kernel) {
  const rl_kernel_family *family = kernel->params.family;
  return family->output_elements(&kernel->shape) / family->pieces(&kernel->shape);
}

int64_t rl_kernel_pieces_in(const rl_kernel_instance *kernel, int64_t elements) {
  const int64_t each = rl_kernel_piece_elements(kernel);
  return each < elements ? elements / each : 1;
}

/* --- windows ----------------------------------------------------------------------------------------------------------- */

typedef struct window {
  int64_t start, elements;
} window;

static window window_of(const rl_kernel_instance *kernel, uint32_t input, int64_t first, int64_t count) {
  window of;
  kernel->params.family->window(&kernel->shape, input, first, count, &of.start, &of.elements);
  return of;
}

/* Whether the first piece and the last need all of the input. */
static bool needed_whole(const rl_kernel_instance *kernel, uint32_t input) {
  const rl_kernel_family *family = kernel->params.family;
  const int64_t all = family->input_elements(&kernel->shape, input), last = family->pieces(&kernel->shape) - 1;
  return window_of(kernel, input, 0, 1).elements == all && window_of(kernel, input, last, 1).elements == all;
}

int rl_kernel_feed_open(rl_kernel_feed *feed, rl_error *err) {
  const rl_kernel_instance *kernel = feed->kernel;
  const rl_kernel_family *family = kernel->params.family;
  feed->rooms = calloc(rl_threads_count(kernel->threads), sizeof *feed->rooms);
  bool failed = feed->rooms == NULL;
  for (uint32_t input = 0; input < family->input_count; input++) {
    if (!needed_whole(kernel, input)) continue;
    feed->whole_room[input] = malloc((size_t)family->input_elements(&kernel->shape, input) * feed->number);
    failed |= feed->whole_room[input] == NULL;
  }
  return failed ? rl_fail(err, RL_SYS, ENOMEM, "out of memory for the inputs of a kernel") : 0;
}

void rl_kernel_feed_close(rl_kernel_feed *feed) {
  for (uint32_t thread = 0; feed->rooms && thread < rl_threads_count(feed->kernel->threads); thread++)
    free(feed->rooms[thread].memory);
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS; input++) free(feed->whole_room[input]);
  free(feed->rooms);
}

typedef struct reading {
  rl_kernel_feed *feed;
  uint32_t input;
} reading;

static int read_part(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const reading *of = context;
  rl_kernel_feed *feed = of->feed;
  (void)thread, (void)err;
  const void *at =
      feed->read(feed->kernel, of->input, first, count, (char *)feed->whole_room[of->input] + (size_t)first * feed->number);
  if (first == 0) feed->whole[of->input] = at;
  return 0;
}

int rl_kernel_feed_refresh(rl_kernel_feed *feed, rl_error *err) {
  enum { STEP = 1 << 16 };
  const rl_kernel_instance *kernel = feed->kernel;
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS; input++) {
    reading of = {feed, input};
    if (feed->whole_room[input] == NULL) continue;
    if (rl_kernel_share(kernel, kernel->params.family->input_elements(&kernel->shape, input), STEP, read_part, &of, err))
      return -1;
  }
  return 0;
}

static int make_room(rl_kernel_room *room, size_t bytes, rl_error *err) {
  if (bytes <= room->bytes) return 0;
  void *memory = realloc(room->memory, bytes);
  if (memory == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for %zu bytes of a kernel's numbers", bytes);
  *room = (rl_kernel_room){memory, bytes};
  return 0;
}

/* The windows of some pieces, but for inputs that are there as a whole; returns how many numbers they and the pieces are. */
static int64_t windows_of(const rl_kernel_feed *feed, int64_t first, int64_t count, window of[RL_KERNEL_INPUTS]) {
  const rl_kernel_instance *kernel = feed->kernel;
  int64_t numbers = count * rl_kernel_piece_elements(kernel);
  for (uint32_t input = 0; input < kernel->params.family->input_count; input++) {
    of[input] = feed->whole_room[input] == NULL ? window_of(kernel, input, first, count) : (window){0, 0};
    numbers += of[input].elements;
  }
  return numbers;
}

/* Whether fewer pieces at once need noticeably less than so many numbers. */
static bool splitting_helps(const rl_kernel_feed *feed, int64_t first, int64_t count, int64_t numbers) {
  window of[RL_KERNEL_INPUTS];
  return windows_of(feed, first, count / 2, of) <= numbers / 4 * 3;
}

int rl_kernel_feed_work(rl_kernel_feed *feed, int64_t first, int64_t count, uint32_t thread, rl_kernel_work *work, void *context,
                        rl_error *err) {
  const rl_kernel_instance *kernel = feed->kernel;
  window of[RL_KERNEL_INPUTS] = {{0}};
  const int64_t numbers = windows_of(feed, first, count, of);
  if (count > 1 && numbers > feed->most && splitting_helps(feed, first, count, numbers))
    return rl_kernel_feed_work(feed, first, count / 2, thread, work, context, err) ||
                   rl_kernel_feed_work(feed, first + count / 2, count - count / 2, thread, work, context, err)
               ? -1
               : 0;
  if (make_room(&feed->rooms[thread], (size_t)numbers * feed->number, err)) return -1;
  const void *in[RL_KERNEL_INPUTS];
  char *room = feed->rooms[thread].memory;
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS; input++) {
    in[input] = feed->whole[input];
    if (of[input].elements == 0) continue;
    in[input] = feed->read(kernel, input, of[input].start, of[input].elements, room);
    room += (size_t)of[input].elements * feed->number;
  }
  work(context, in, first, count, room);
  return 0;
}
