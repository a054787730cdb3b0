#include "gallery.h"
#include "subject.h"

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  static rl_instance base;
  static rl_device device;
  (void)argc, (void)argv;
  *instance = &base;
  return gallery_open(&base, &device, err);
}
