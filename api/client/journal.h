/* Writes the verdict of a suite run to the systemd journal, with fields that journalctl can match. */
#ifndef RL_CLIENT_JOURNAL_H
#define RL_CLIENT_JOURNAL_H

#include <cjson/cJSON.h>

#include "base/error.h"

/* Sends one entry about an ended run (GET /suite-runs/{id}). Does nothing unless standard error is connected to the journal,
 * according to $JOURNAL_STREAM (systemd.exec(5)). Fields: SUITE, SUITE_RUN_ID, STATE, VERDICT (of a completed run), and a
 * JOB_ID for each of up to 512 jobs. Fails with RL_ERRNO if the journal refused the entry. */
int rl_journal_send_verdict(const cJSON *run, rl_error *err);

#endif
