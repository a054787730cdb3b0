#include "subject.h"
#include "tiny.h"

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  static tiny_fixture rig;
  (void)argc, (void)argv;
  *instance = &rig.base;
  return tiny_open(&rig, err);
}
