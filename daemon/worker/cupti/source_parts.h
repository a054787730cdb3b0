/* Between the parts of source.c: what a source keeps, and what each part does for it. */
#ifndef RL_CUPTI_SOURCE_PARTS_H
#define RL_CUPTI_SOURCE_PARTS_H

#include "model/catalogue.h"
#include "worker/code/listing.h"
#include "worker/cupti/pm_sampling.h"
#include "worker/cupti/sampling.h"
#include "worker/cupti/source.h"
#include "worker/cupti/texts.h"
#include "worker/topology.h"

typedef struct rl_inside { /* of one kernel of the request */
  rl_listing listing;
  unsigned char *cubin; /* NULL: its code is not known */
  size_t cubin_size;
  rl_cubin_function function;
  rl_text *text;
  uint64_t crc;                 /* of the module that counts came from; 0: none came */
  char no_line[RL_REASON_SIZE]; /* why it has no time lines; "" when it has */
} rl_inside;

typedef enum rl_view { RL_VIEW_PLACE, RL_VIEW_SASS, RL_VIEW_SAMPLING, RL_VIEW_TIMELINE, RL_VIEWS } rl_view;

struct rl_source {
  int device_index, processors;
  double clock_hz;
  char chip[64];
  bool sass_open;
  rl_texts texts;
  rl_topology place;
  rl_counter_plan *lines; /* made at the first use */
  /* of the request: */
  const rl_source_request *request;
  bool wanted[RL_VIEWS];
  char reasons[RL_VIEWS][RL_REASON_SIZE]; /* why a view could not be had; "" when it could */
  rl_inside *kernels;
  rl_records *records;
  size_t launch;   /* that is being looked at */
  uint32_t period; /* of sampling: 2^period cycles */
  unsigned round;  /* of sampling */
  bool sampled;
  rl_sampling *sampling; /* outlives the request */
  double interval_ns;    /* of time lines */
  rl_pm *pm;
};

/* The context of the process, in which the device is looked at. */
CUcontext rl_source_context(void);

/* source_views.c: one step each, on the inputs it had. A refusal of the profiler's is an error of RL_CUPTI. */
/* Launch by launch, those that are asked for between begin and end; source->launch says which. */
int rl_source_replay(rl_source *source, int (*begin)(rl_source *, rl_error *), int (*end)(rl_source *, rl_error *),
                     rl_error *err);
int rl_source_count_instructions(rl_source *source, rl_error *err);
int rl_source_sample_stalls(rl_source *source, rl_error *err);
unsigned rl_source_sampling_rounds(const rl_source *source, size_t launch); /* how often a launch was sampled */

/* source_lines.c */
int rl_source_draw_lines(rl_source *source, rl_error *err);

/* source_metrics.c */
rl_view rl_source_view(const char *metric); /* which a raw metric of ours comes from */
bool rl_source_wants(const rl_profile *profile, const rl_raw_metric *metric);
int rl_source_append_metrics(rl_source *source, size_t index, rl_error *err); /* of a kernel of the request */

#endif
