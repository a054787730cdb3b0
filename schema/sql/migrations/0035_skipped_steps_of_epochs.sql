-- epochs.skipped_steps counted from the start of the warm-up epochs or of the measured ones; now it counts those of the epoch.
UPDATE epochs SET skipped_steps = counted.skipped_steps
FROM (SELECT pass_id, epoch, skipped_steps - lag(skipped_steps, 1, 0) OVER (PARTITION BY pass_id, warmup ORDER BY epoch)
        AS skipped_steps
      FROM epochs) counted
WHERE counted.pass_id = epochs.pass_id AND counted.epoch = epochs.epoch;
PRAGMA user_version = 35;
