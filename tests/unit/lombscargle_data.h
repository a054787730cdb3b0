/* Reads the samples of SciPy's example (tests/data; the example keeps 114 of 1024 samples) and the power that
 * scipy.signal.lombscargle (SciPy 1.18) computes from them at 530 of 2^20 frequencies. */
#ifndef RL_TESTS_LOMBSCARGLE_DATA_H
#define RL_TESTS_LOMBSCARGLE_DATA_H

#include <math.h>
#include <stdio.h>

enum { SCIPY_SAMPLES = 114, SCIPY_POINTS = 530, SCIPY_FREQUENCIES = 1 << 20 };

typedef struct scipy_data {
  double time[SCIPY_SAMPLES], value[SCIPY_SAMPLES];
  /* The power is known at SCIPY_POINTS of the frequencies. index[i]: index of frequency[i] among all SCIPY_FREQUENCIES. */
  int index[SCIPY_POINTS];
  double frequency[SCIPY_POINTS], power[SCIPY_POINTS];
} scipy_data;

/* Reads the two files of a folder. Returns 1; 0 when a file or a line is missing. */
static inline int scipy_read(const char *folder, scipy_data *data) {
  char path[512];
  int samples = 0, points = 0;
  snprintf(path, sizeof path, "%s/lombscargle_samples.csv", folder);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  if (fscanf(file, "%*[^\n]") == 0)
    while (samples < SCIPY_SAMPLES && fscanf(file, "%lf,%lf", &data->time[samples], &data->value[samples]) == 2) samples++;
  fclose(file);
  snprintf(path, sizeof path, "%s/lombscargle_power.csv", folder);
  file = fopen(path, "r");
  if (!file) return 0;
  if (fscanf(file, "%*[^\n]") == 0)
    while (points < SCIPY_POINTS &&
           fscanf(file, "%d,%lf,%lf", &data->index[points], &data->frequency[points], &data->power[points]) == 3)
      points++;
  fclose(file);
  return samples == SCIPY_SAMPLES && points == SCIPY_POINTS;
}

/* Returns ‖power - SciPy's power‖ / ‖SciPy's power‖. power[i]: the computed power at data->frequency[i]. */
static inline double scipy_error(const scipy_data *data, const double *power) {
  double squared_error = 0, squared_norm = 0;
  for (int i = 0; i < SCIPY_POINTS; i++) {
    squared_error += (power[i] - data->power[i]) * (power[i] - data->power[i]);
    squared_norm += data->power[i] * data->power[i];
  }
  return sqrt(squared_error / squared_norm);
}

#endif
