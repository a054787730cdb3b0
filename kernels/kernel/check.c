/* The result of a kernel against the reference of its family, in double precision: all of it where that takes a moment, else the
 * first pieces, the last, and some from here and there. The error is the largest of any block of neighbours, so that one wrong
 * element is not lost among millions of right ones. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernel/pieces.h"
#include "hash.h"

enum {
  BLOCK = 1 << 14, /* elements whose error is one number */
  STAGE = 1 << 24, /* elements that come from the device at once, where a block has fewer */
  STRETCHES = 64   /* that a sample consists of */
};
static const double OPERATIONS = 0x1p31; /* that a check may take, about */

/* Which pieces are checked: as many stretches of as many pieces each, one at random in each equal part of the output, but for the
 * first one, which is at the very beginning, and the last, which is at the very end. */
typedef struct sample {
  int64_t pieces; /* of the output */
  int64_t stretches, length;
  int64_t block, blocks; /* pieces of a block, blocks of a stretch */
  uint64_t key;
} sample;

static sample choose(const rl_kernel_instance *kernel) {
  const rl_kernel_family *family = kernel->params.family;
  double (*operations)(const rl_kernel_shape *) =
      family->reference_operations ? family->reference_operations : family->operations;
  const double work = (double)family->output_elements(&kernel->shape) + operations(&kernel->shape);
  sample chosen = {.pieces = family->pieces(&kernel->shape), .stretches = 1, .key = rl_hash64((uint64_t)kernel->params.seed)};
  chosen.length = chosen.pieces;
  if (work > OPERATIONS && chosen.pieces > 1) {
    const int64_t afforded = (int64_t)((double)chosen.pieces * OPERATIONS / work);
    chosen.stretches = afforded < 2 ? 2 : afforded < STRETCHES ? afforded : STRETCHES;
    chosen.length = afforded < STRETCHES ? 1 : afforded / STRETCHES;
  }
  chosen.block = rl_kernel_pieces_in(kernel, BLOCK);
  chosen.blocks = (chosen.length + chosen.block - 1) / chosen.block;
  return chosen;
}

static int64_t stretch_start(const sample *of, int64_t stretch) {
  if (stretch == 0) return 0;
  if (stretch == of->stretches - 1) return of->pieces - of->length;
  const int64_t low = of->pieces * stretch / of->stretches, high = of->pieces * (stretch + 1) / of->stretches;
  return low + (int64_t)(rl_hash64(of->key + (uint64_t)stretch) % (uint64_t)(high - low - of->length + 1));
}

/* First piece of a block, counting those of all stretches on. */
static int64_t block_start(const sample *of, int64_t block) {
  return stretch_start(of, block / of->blocks) + block % of->blocks * of->block;
}

static int64_t block_length(const sample *of, int64_t block) {
  const int64_t left = of->length - block % of->blocks * of->block;
  return left < of->block ? left : of->block;
}

/* --- comparing --------------------------------------------------------------------------------------------------------- */

typedef struct verdict {
  double error;    /* the largest of any block */
  int64_t missing; /* elements that are no numbers, and should be */
} verdict;

typedef struct checking {
  rl_kernel_instance *kernel;
  rl_kernel_feed feed;
  sample of;
  double least; /* what an element counts for at least, where errors are relative to the reference */
  char *stage;
  size_t stage_block, piece_bytes; /* bytes of a block in the stage; of a piece */
  int64_t at;                      /* block that the stage begins with */
  verdict *verdicts;               /* one a thread */
} checking;

typedef struct comparing { /* one block */
  const checking *all;
  const char *got;              /* from the device */
  int64_t first;                /* piece that it begins with */
  double difference, reference; /* sums of squares */
  int64_t missing;
} comparing;

static void compare(void *context, const void *const *in, int64_t first, int64_t count, void *out) {
  comparing *block = context;
  const rl_kernel_instance *kernel = block->all->kernel;
  const int64_t each = rl_kernel_piece_elements(kernel);
  const char *got = block->got + (size_t)(first - block->first) * block->all->piece_bytes;
  double *expected = out;
  kernel->params.family->reference(&kernel->shape, (const double *const *)in, first, count, expected);
  for (int64_t i = 0; i < count * each; i++) {
    double value = rl_dtype_load(kernel->params.dtype, got, (size_t)i), off = value - expected[i];
    block->missing += !isfinite(value);
    block->difference += off * off;
    block->reference += expected[i] * expected[i];
  }
}

static int check_block(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  checking *all = context;
  verdict *said = &all->verdicts[thread];
  for (int64_t i = first; i < first + count; i++) {
    comparing block = {.all = all, .got = all->stage + (size_t)i * all->stage_block, .first = block_start(&all->of, all->at + i)};
    const int64_t pieces = block_length(&all->of, all->at + i);
    if (rl_kernel_feed_work(&all->feed, block.first, pieces, thread, compare, &block, err)) return -1;
    const double size = fmax(sqrt(block.reference), all->least * sqrt((double)(pieces * rl_kernel_piece_elements(all->kernel))));
    said->missing += block.missing;
    said->error = fmax(said->error, size > 0 ? sqrt(block.difference) / size : sqrt(block.difference));
  }
  return 0;
}

/* Blocks [at, at + count) into the stage: what lies together comes together. */
static int fetch(checking *all, int64_t at, int64_t count, rl_error *err) {
  rl_device *device = all->kernel->base.device;
  all->at = at;
  for (int64_t i = at, end; i < at + count; i = end) {
    end = (i / all->of.blocks + 1) * all->of.blocks;
    if (end > at + count) end = at + count;
    const int64_t first = block_start(&all->of, i), last = block_start(&all->of, end - 1) + block_length(&all->of, end - 1);
    if (rl_device_cancelled(device, err) || device->ops->download(device, all->stage + (size_t)(i - at) * all->stage_block,
                                                                  (char *)all->kernel->out + (size_t)first * all->piece_bytes,
                                                                  (size_t)(last - first) * all->piece_bytes, err))
      return -1;
  }
  return 0;
}

static int compare_all(checking *all, rl_error *err) {
  const int64_t blocks = all->of.stretches * all->of.blocks, elements = all->of.block * rl_kernel_piece_elements(all->kernel);
  int64_t at_once = elements < STAGE ? STAGE / elements : 1;
  if (at_once > blocks) at_once = blocks;
  all->stage = malloc((size_t)at_once * all->stage_block);
  all->verdicts = calloc(rl_threads_count(all->kernel->threads), sizeof *all->verdicts);
  if (all->stage == NULL || all->verdicts == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the check");
  if (rl_kernel_feed_open(&all->feed, err) || rl_kernel_feed_refresh(&all->feed, err)) return -1;
  for (int64_t at = 0; at < blocks; at += at_once) {
    const int64_t some = blocks - at < at_once ? blocks - at : at_once;
    if (fetch(all, at, some, err) || rl_kernel_share(all->kernel, some, 1, check_block, all, err)) return -1;
  }
  return 0;
}

static int conclude(const checking *all, rl_check *check, rl_error *err) {
  const rl_kernel_instance *kernel = all->kernel;
  verdict worst = {0};
  for (uint32_t thread = 0; thread < rl_threads_count(kernel->threads); thread++) {
    worst.missing += all->verdicts[thread].missing;
    worst.error = fmax(worst.error, all->verdicts[thread].error);
  }
  if (worst.missing > 0)
    return rl_fail(err, RL_SYS, EDOM, "%lld elements of the result are not numbers", (long long)worst.missing);
  *check = (rl_check){.relative_error = worst.error,
                      .tolerance = rl_kernel_tolerance(&kernel->params, &kernel->shape),
                      .checked_ratio = (double)(all->of.stretches * all->of.length) / (double)all->of.pieces};
  return 0;
}

/* --- the whole --------------------------------------------------------------------------------------------------------- */

static int run_once(rl_kernel_instance *kernel, rl_error *err) {
  rl_device *device = kernel->base.device;
  rl_sequence one = kernel->sequence;
  rl_program once = {.name = "check", .sequences = &one, .sequence_count = 1};
  rl_elapsed elapsed;
  one.repeat = 1;
  return rl_kernel_poison(kernel, err) || device->ops->run_eager(device, &once, NULL, &elapsed, err) ? -1 : 0;
}

/* The inputs once more, from the seed. */
static const void *generate(const rl_kernel_instance *kernel, uint32_t input, int64_t start, int64_t count, void *room) {
  enum { SOME = 1024 };
  const int dtype = kernel->params.dtype;
  double some[SOME];
  for (int64_t done = 0; done < count; done += SOME) {
    const int64_t now = count - done < SOME ? count - done : SOME;
    rl_kernel_input_fill(&kernel->params, &kernel->shape, input, start + done, now, some);
    rl_dtype_to_double(dtype, some, now, (double *)room + done);
  }
  return room;
}

int rl_kernel_check(rl_instance *instance, rl_check *check, rl_error *err) {
  rl_kernel_instance *kernel = (rl_kernel_instance *)instance;
  const rl_kernel_family *family = kernel->params.family;
  const double scale = family->scale ? family->scale(&kernel->shape) : 0;
  checking all = {.kernel = kernel,
                  .of = choose(kernel),
                  .least = fmax(scale, rl_dtype_smallest_normal(kernel->params.dtype)),
                  .feed = {.kernel = kernel, .number = sizeof(double), .most = 4 * BLOCK, .read = generate}};
  all.piece_bytes = (size_t)rl_kernel_piece_elements(kernel) * rl_dtype_size(kernel->params.dtype);
  all.stage_block = (size_t)all.of.block * all.piece_bytes;
  int rc = run_once(kernel, err) || compare_all(&all, err) || conclude(&all, check, err) ? -1 : 0;
  rl_kernel_feed_close(&all.feed);
  free(all.stage);
  free(all.verdicts);
  return rc;
}
