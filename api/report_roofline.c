/* Implements the functions of report.h for the verdict and the roofline. */
#include <math.h>

#include "analyze/kernel_verdict.h"
#include "api/report.h"
#include "base/json_members.h"

static cJSON *roofs_json(const rl_roof *roofs, size_t count) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < count; i++) {
    cJSON *roof = cJSON_CreateObject();
    cJSON_AddStringToObject(roof, "name", roofs[i].name);
    rl_json_add_number(roof, "achieved_per_s", roofs[i].achieved_per_s);
    cJSON_AddBoolToObject(roof, "achieved_is_upper_bound", roofs[i].is_upper_bound);
    rl_json_add_number(roof, "theoretical_per_s", roofs[i].theoretical_per_s);
    rl_json_add_number(roof, "measured_per_s", roofs[i].measured_per_s);
    rl_json_add_number(roof, "of_theoretical_ratio", roofs[i].achieved_per_s / roofs[i].theoretical_per_s);
    rl_json_add_number(roof, "of_measured_ratio", roofs[i].achieved_per_s / roofs[i].measured_per_s);
    cJSON_AddItemToArray(array, roof);
  }
  return array;
}

static cJSON *point_json(const rl_roofline *roofline, int level, int unit) {
  const rl_roof_point *source = &roofline->points[level][unit];
  cJSON *point = cJSON_CreateObject();
  cJSON_AddStringToObject(point, "level", roofline->levels[level].name);
  cJSON_AddStringToObject(point, "unit", roofline->units[unit].name);
  rl_json_add_number(point, "intensity", source->intensity);
  rl_json_add_number(point, "ridge_theoretical", source->ridge_theoretical);
  rl_json_add_number(point, "ridge_measured", source->ridge_measured);
  rl_json_add_number(point, "attainable_theoretical_per_s", source->attainable_theoretical_per_s);
  rl_json_add_number(point, "attainable_measured_per_s", source->attainable_measured_per_s);
  return point;
}

/* Makes the points of all levels and units. A unit that executed no operations has no points. */
static cJSON *points_json(const rl_roofline *roofline) {
  cJSON *array = cJSON_CreateArray();
  for (int unit = 0; unit < RL_UNIT_COUNT; unit++)
    for (int level = 0; level < RL_LEVEL_COUNT; level++)
      if (roofline->units[unit].achieved_per_s > 0) cJSON_AddItemToArray(array, point_json(roofline, level, unit));
  return array;
}

static cJSON *model_json(const rl_roof_model *source) {
  cJSON *model = cJSON_CreateObject();
  rl_json_add_number(model, "bytes", source->bytes);
  rl_json_add_number(model, "operations", source->operations);
  rl_json_add_number(model, "intensity", source->intensity);
  rl_json_add_number(model, "bytes_per_s", source->bytes_per_s);
  rl_json_add_number(model, "operations_per_s", source->operations_per_s);
  return model;
}

static cJSON *classification_json(const rl_roofline *roofline) {
  const rl_classification *source = &roofline->classification;
  cJSON *classification = cJSON_CreateObject();
  cJSON_AddStringToObject(classification, "bound", rl_bound_names[source->bound]);
  rl_json_add_number(classification, "memory_pct", source->memory_pct);
  rl_json_add_number(classification, "compute_pct", source->compute_pct);
  rl_json_add_number(classification, "busy_pct", source->busy_pct);
  rl_json_add_number(classification, "balanced_pct", source->balanced_pct);
  rl_json_add_text(classification, "unit", source->unit >= 0 ? roofline->units[source->unit].name : NULL);
  rl_json_add_number(classification, "intensity", source->intensity);
  rl_json_add_number(classification, "ridge", source->ridge);
  cJSON_AddStringToObject(classification, "why", source->why);
  return classification;
}

cJSON *rl_report_verdict(const rl_metric_values *values, bool library) {
  rl_kernel_verdict verdict = rl_kernel_verdict_make(values);
  cJSON *object = cJSON_CreateObject();
  rl_json_add_text(object, "bound", verdict.bound == RL_KERNEL_BOUND_UNKNOWN ? NULL : rl_kernel_bound_names[verdict.bound]);
  rl_json_add_text(object, "pipeline", verdict.pipeline);
  rl_json_add_text(object, "metric", verdict.metric);
  rl_json_add_number(object, "value", verdict.value);
  rl_json_add_text(object, "unit", verdict.unit);
  cJSON_AddStringToObject(object, "message", verdict.message);
  rl_json_add_text(object, "advice", library ? NULL : verdict.advice);
  return object;
}

cJSON *rl_report_roofline(const rl_metric_values *values) {
  rl_roofline roofline = rl_roofline_compute(values);
  cJSON *object = cJSON_CreateObject();
  rl_json_add_number(object, "duration_s", roofline.duration_s);
  cJSON_AddBoolToObject(object, "counted", roofline.counted);
  cJSON_AddItemToObject(object, "levels", roofs_json(roofline.levels, RL_LEVEL_COUNT));
  cJSON_AddItemToObject(object, "units", roofs_json(roofline.units, RL_UNIT_COUNT));
  cJSON_AddItemToObject(object, "points", points_json(&roofline));
  cJSON_AddItemToObject(object, "model", model_json(&roofline.model));
  cJSON_AddItemToObject(object, "classification", classification_json(&roofline));
  return object;
}
