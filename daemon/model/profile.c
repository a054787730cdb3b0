/* Implements profile.h, and defines the default set and metrics. */
#include "model/profile.h"

#include <string.h>

#include "model/catalogue.h"

const char *const rl_profile_set_names[] = {[RL_PROFILE_SET_AUTO] = "auto",
                                            [RL_PROFILE_SET_BASIC] = "basic",
                                            [RL_PROFILE_SET_DETAILED] = "detailed",
                                            [RL_PROFILE_SET_FULL] = "full",
                                            NULL};

const char *const rl_l2_state_names[] = {[RL_L2_FULL] = "full", [RL_L2_EMPTY] = "empty", NULL};

/* The keys of the JSON in the database must not change. */
const rl_field rl_profile_options_fields[] = {
    RL_FIELD(rl_profile_options, sections, RL_FIELD_CHOICES, .names = rl_section_names, .may_be_empty = true),
    RL_FIELD(rl_profile_options, metrics, RL_FIELD_NAMES),
    RL_FIELD_WITH_KEY("kernels", rl_profile_options, kernel_pattern, RL_FIELD_TEXT),
    RL_FIELD_WITH_KEY("launch", rl_profile_options, matching_index, RL_FIELD_INT),
    RL_FIELD(rl_profile_options, cache, RL_FIELD_CHOICE, .names = rl_l2_state_names),
    {0}};

/* The default options are the set "basic" with these metrics, which show whether a kernel is memory-bound or compute-bound and
 * place it in the roofline. */
static const char default_metrics[] =
    "gpu__time_duration.sum\nsm__cycles_elapsed.avg.per_second\nsm__throughput.avg.pct_of_peak_sustained_elapsed\n"
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed\ngpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\n"
    "dram__bytes.sum\ndram__bytes_read.sum\ndram__bytes_write.sum\ndram__bytes.sum.per_second\ndram__bytes_read.sum.per_second\n"
    "dram__bytes_write.sum.per_second\nl1tex__t_sector_hit_rate.pct\nlts__t_sector_hit_rate.pct\n"
    "sm__warps_active.avg.pct_of_peak_sustained_active\nsm__inst_executed.avg.per_cycle_active\nsmsp__inst_executed.sum\n"
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
_Static_assert(sizeof default_metrics <= RL_PROFILE_METRICS_SIZE, "the default metrics must fit into the options");

static uint32_t sections_of_set(const char *set) {
  for (size_t i = 0; i < rl_section_set_count; i++)
    if (strcmp(rl_section_sets[i].name, set) == 0) return rl_section_sets[i].sections;
  return 0;
}

rl_profile_options rl_profile_options_resolve(int set, const rl_profile_options *requested) {
  rl_profile_options profile_options = *requested;
  if (set != RL_PROFILE_SET_AUTO) profile_options.sections |= sections_of_set(rl_profile_set_names[set]);
  if (profile_options.sections == 0 && profile_options.metrics[0] == '\0') {
    profile_options.sections = sections_of_set("basic");
    memcpy(profile_options.metrics, default_metrics, sizeof default_metrics);
  }
  return profile_options;
}
