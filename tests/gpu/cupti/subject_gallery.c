/* The subject of a probe program (subject.h) that consists of launches of gallery.h. The arguments name the launches of the step
 * in order; a number after a name repeats that launch. Without arguments, the step has each launch of the gallery once. */
#include <stdlib.h>
#include <string.h>

#include "gallery.h"
#include "subject.h"

enum { MAX_LAUNCHES = 64 };

static const rl_launch *find_launch(const rl_sequence *gallery, const char *name) {
  for (size_t i = 0; i < gallery->launch_count; i++)
    if (strcmp(gallery->launches[i].name, name) == 0) return &gallery->launches[i];
  return NULL;
}

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  static rl_instance base;
  static rl_device device;
  static rl_launch launches[MAX_LAUNCHES];
  static rl_sequence sequence = {.name = "step", .launches = launches, .repeat = 1};
  int opened = gallery_open(&base, &device, err);
  *instance = &base;
  if (opened != 0 || argc == 0) return opened;
  for (int i = 0; i < argc; i++) {
    const rl_launch *launch = find_launch(&base.iteration.sequences[0], argv[i]);
    size_t times = i + 1 < argc ? strtoul(argv[i + 1], NULL, 10) : 0;
    if (launch == NULL || times > MAX_LAUNCHES) return rl_fail(err, RL_INPUT, 0, "expected: LAUNCH [TIMES]..., not %s", argv[i]);
    i += times > 0;
    for (times += times == 0; times > 0 && sequence.launch_count < MAX_LAUNCHES; times--)
      launches[sequence.launch_count++] = *launch;
  }
  base.iteration.sequences = &sequence;
  return 0;
}
