/* Formats numbers with the unit that suits their size. Durations and sizes have the unit and the digits that web/lib/format.js
 * gives them; rates have fewer digits here. The numbers must not be NAN. */
#ifndef RL_BASE_QUANTITY_H
#define RL_BASE_QUANTITY_H

typedef struct rl_scaled_quantity {
  double value; /* in `unit` */
  const char *unit;
} rl_scaled_quantity;

/* A duration below 1 ms has the unit ms only from rl_scale_ms. */
rl_scaled_quantity rl_scale_us(double us); /* ns, µs, ms or s */
rl_scaled_quantity rl_scale_ms(double ms); /* ms or s */
rl_scaled_quantity rl_scale_bytes(double bytes);

typedef struct rl_quantity_text {
  char text[32];
} rl_quantity_text;

/* Durations have at least three significant digits: "640.0 ns", "12.50 µs", "263.9 ms", "18.40 s". */
rl_quantity_text rl_us_text(double us);
rl_quantity_text rl_ms_text(double ms);
rl_quantity_text rl_bytes_text(double bytes);                       /* "98.2 MiB", "2.0 GiB": one decimal */
rl_quantity_text rl_bytes_per_s_text(double bytes_per_s);           /* "3.91 TB/s", "911.2 GB/s" */
rl_quantity_text rl_operations_per_s_text(double operations_per_s); /* "60.62 TFLOP/s", "94.7 GFLOP/s" */

#endif
