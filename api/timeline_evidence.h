/* The idle intervals and the names that a finding of a run's timeline is about. */
#ifndef RL_API_TIMELINE_EVIDENCE_H
#define RL_API_TIMELINE_EVIDENCE_H

#include <cjson/cJSON.h>

#include "api/run_timeline.h"

/* Returns the longest intervals of an idle class as JSON, the longest first. */
cJSON *rl_timeline_longest_intervals(const rl_run_timeline *timeline, rl_time_class time_class);
/* Returns the findings as JSON, each with its longest intervals and its names. */
cJSON *rl_timeline_findings_json(const rl_run_timeline *timeline);

#endif
