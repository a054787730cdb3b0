-- Adds the events of the webhook.
CREATE TABLE webhook_events ( -- the newest 1000 events that the webhook delivers
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE, -- value of the header webhook-id in each attempt
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('regression.confirmed', 'regression.fixed')),
  body TEXT NOT NULL CHECK (json_valid(body)), -- body of the request
  created_ns INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'given_up')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_ns INTEGER, -- time of the next attempt; NULL: the event is not pending
  ended_ns INTEGER, -- time at which the event was delivered or given up
  last_error TEXT -- error of the last attempt; NULL: the attempt did not fail
) STRICT;
CREATE INDEX webhook_events_by_state ON webhook_events (state, next_attempt_ns);
CREATE INDEX webhook_events_by_run ON webhook_events (suite_run_id);
PRAGMA user_version = 21;
