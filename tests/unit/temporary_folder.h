/* Removes folders that tests create. Include cmocka.h before this header. */
#ifndef RL_TESTS_TEMPORARY_FOLDER_H
#define RL_TESTS_TEMPORARY_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline int remove_entry(const char *path, const struct stat *status, int type, struct FTW *position) {
  (void)status, (void)type, (void)position;
  return remove(path);
}

/* Removes the folder with everything in it. Fails the test if that fails. */
static inline void remove_folder(const char *folder) { assert_int_equal(nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0); }

#endif
