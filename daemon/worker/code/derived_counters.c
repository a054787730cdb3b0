/* L2 looks up each requested sector: a hit, or a miss, whose data is in the memory of the device, of the host or of a peer. */
#include "worker/code/derived_counters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Measured on H200: counted in one pass, each counter was exactly the sum of its terms, for 13 kernels with reads, writes,
 * textures, surfaces and local memory, and the first four rows not for the two kernels with atomics
 * (docs/measurements/h200-reports.md). Sums of hits over operations of all units, and of hits or misses over eviction policies of
 * all units, were not exact. Names are without "lts__t_" and ".sum". */
static const struct {
  const char *counter, *added[2], *subtracted[3];
  const char *zero; /* the sum holds if this counter must be 0, because the code lacks instructions; NULL: always */
} sums[] = {
    {"requests_srcunit_tex", {"requests_srcunit_tex_op_read", "requests_srcunit_tex_op_write"}, .zero = "srcunit_tex_op_red"},
    {"sectors_srcunit_tex_lookup_hit",
     {"sectors_srcunit_tex_op_read_lookup_hit", "sectors_srcunit_tex_op_write_lookup_hit"},
     .zero = "srcunit_tex_op_red"},
    {"sectors_srcunit_tex_op_write_lookup_miss",
     {"sectors_srcunit_tex_lookup_miss"},
     {"sectors_srcunit_tex_op_read_lookup_miss"},
     "srcunit_tex_op_red"},
    {"sectors_srcunit_tex_aperture_device_op_write_lookup_miss",
     {"sectors_srcunit_tex_lookup_miss"},
     {"sectors_srcunit_tex_op_read_lookup_miss", "sectors_srcunit_tex_aperture_sysmem_op_write_lookup_miss"},
     "srcunit_tex_op_red"},
    {"sectors_srcunit_tex_aperture_device_op_read_lookup_miss",
     {"sectors_srcunit_tex_op_read_lookup_miss"},
     {"sectors_srcunit_tex_aperture_sysmem_op_read_lookup_miss"},
     "srcunit_tex_aperture_peer"},
    {"sectors_srcunit_tex_aperture_device_lookup_miss",
     {"sectors_srcunit_tex_lookup_miss"},
     {"sectors_srcunit_tex_aperture_sysmem_lookup_miss"},
     "srcunit_tex_aperture_peer"},
    {"sectors_srcunit_gcc_aperture_device_lookup_miss",
     {"sectors_srcunit_gcc_lookup_miss"},
     {"sectors_srcunit_gcc_aperture_sysmem_lookup_miss"},
     "srcunit_tex_aperture_peer"},
    {"sectors_srcunit_ltcfabric_aperture_device_lookup_miss",
     {"sectors_srcunit_ltcfabric_lookup_miss"},
     {"sectors_srcunit_ltcfabric_aperture_sysmem_lookup_miss", "sectors_srcunit_ltcfabric_aperture_peer_lookup_miss"}},
    {"sectors_aperture_device_lookup_miss",
     {"sectors_lookup_miss"},
     {"sectors_aperture_sysmem_lookup_miss", "sectors_aperture_peer_lookup_miss"}},
    {"sectors_srcunit_ltcfabric_evict_normal_lookup_miss",
     {"sectors_srcunit_ltcfabric_lookup_miss"},
     {"sectors_srcunit_ltcfabric_evict_first_lookup_miss", "sectors_srcunit_ltcfabric_evict_last_lookup_miss",
      "sectors_srcunit_ltcfabric_evict_normal_demote_lookup_miss"}},
};

/* Two passes that execute the same kernel may count slightly different numbers of sectors. */
static const double NEGLIGIBLE_RATIO = 0.01;
static const char CONTRADICTION[] =
    "counters from which it is computed were counted in different passes and contradict each other";

static void format_name(const char *counter, char name[RL_METRIC_NAME_SIZE]) {
  snprintf(name, RL_METRIC_NAME_SIZE, "lts__t_%s.sum", counter);
}

static void add_term(rl_counter_terms *terms, const char *counter) {
  if (counter != NULL) format_name(counter, terms->names[terms->count++]);
}

/* Returns whether all instructions that increment the counter are absent. */
static bool is_zero(const char *counter, rl_instruction_classes absent) {
  char name[RL_METRIC_NAME_SIZE];
  if (counter == NULL) return true;
  format_name(counter, name);
  return (rl_instruction_classes_of_metric(name) & absent) != 0;
}

static bool find_sum(const char *counter, rl_instruction_classes absent, rl_counter_terms *terms) {
  char name[RL_METRIC_NAME_SIZE];
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    format_name(sums[i].counter, name);
    if (strcmp(name, counter) != 0 || !is_zero(sums[i].zero, absent)) continue;
    *terms = (rl_counter_terms){.reason = "equals the sum or the difference of other counters of L2"};
    for (size_t t = 0; t < sizeof sums[i].added / sizeof *sums[i].added; t++) add_term(terms, sums[i].added[t]);
    terms->added_count = terms->count;
    for (size_t t = 0; t < sizeof sums[i].subtracted / sizeof *sums[i].subtracted; t++) add_term(terms, sums[i].subtracted[t]);
    return true;
  }
  return false;
}

bool rl_counter_terms_find(const char *counter, rl_instruction_classes absent, rl_counter_terms *terms) {
  char equal[RL_METRIC_NAME_SIZE];
  const char *reason = rl_equal_metric(counter, absent, equal, sizeof equal);
  /* Only GH100 has the class of eviction policies; the sums were not measured on other chips. */
  if (is_zero("sectors_srcunit_tex_evict_first", absent) && find_sum(reason != NULL ? equal : counter, absent, terms))
    return true;
  if (reason == NULL) return false;
  *terms = (rl_counter_terms){.count = 1, .added_count = 1, .reason = reason};
  snprintf(terms->names[0], sizeof terms->names[0], "%s", equal);
  return true;
}

double rl_counter_terms_sum(const double *values, size_t count, size_t added_count, const char **reason) {
  double added = 0, subtracted = 0;
  for (size_t i = 0; i < count; i++) *(i < added_count ? &added : &subtracted) += values[i];
  *reason = NULL;
  if (isnan(added) || isnan(subtracted)) *reason = "a counter from which it is computed has no value";
  else if (subtracted > added * (1 + NEGLIGIBLE_RATIO)) *reason = CONTRADICTION;
  if (*reason != NULL) return NAN;
  return fmax(added - subtracted, 0);
}

const char *rl_counter_contradiction(const char *metric, double value) {
  return rl_ends_with(metric, "_hit_rate.pct") && value > 100 * (1 + NEGLIGIBLE_RATIO) ? CONTRADICTION : NULL;
}
