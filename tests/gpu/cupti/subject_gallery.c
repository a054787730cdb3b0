/* subject: nothing, for every kernel of the gallery once, or LAUNCH TIMES. */
#include <stdlib.h>
#include <string.h>

#include "gallery.h"
#include "subject.h"

enum { MOST_TIMES = 64 };

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  static rl_instance base;
  static rl_device device;
  static rl_launch repeated[MOST_TIMES];
  static rl_sequence sequence = {.name = "step", .launches = repeated, .repeat = 1};
  int opened = gallery_open(&base, &device, err);
  *instance = &base;
  if (opened != 0 || argc == 0) return opened;
  const rl_sequence *all = &base.iteration.sequences[0];
  size_t at = 0, times = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  while (at < all->launch_count && strcmp(all->launches[at].name, argv[0]) != 0) at++;
  if (at == all->launch_count || times == 0 || times > MOST_TIMES) return rl_fail(err, RL_INPUT, 0, "expected: LAUNCH TIMES");
  while (sequence.launch_count < times) repeated[sequence.launch_count++] = all->launches[at];
  base.iteration.sequences = &sequence;
  return 0;
}
