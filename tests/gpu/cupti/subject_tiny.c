/* The subject of a probe program (subject.h) that consists of the launches of tiny.h: one step with a sleeping kernel, a copy,
 * multiply-adds, two reads of the same bytes and an update of a state. It takes no arguments. */
#include "subject.h"
#include "tiny.h"

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  static tiny_fixture fixture;
  (void)argc, (void)argv;
  *instance = &fixture.base;
  return tiny_open(&fixture, err);
}
