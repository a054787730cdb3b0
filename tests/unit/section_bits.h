/* Finds the bit of a report section in sets of sections. Include cmocka.h before this header. */
#ifndef RL_TESTS_SECTION_BITS_H
#define RL_TESTS_SECTION_BITS_H

#include <stdint.h>
#include <string.h>

#include "model/catalogue.h"

/* Returns the bit of the section with this id. Fails the test if there is none. */
static inline uint32_t section_bit(const char *id) {
  for (size_t i = 0; i < rl_section_count; i++)
    if (strcmp(rl_sections[i].id, id) == 0) return UINT32_C(1) << i;
  fail_msg("there is no section %s", id);
  return 0;
}

#endif
