"""Makes a short chaos run; chaos.py makes longer ones."""

import os
import random

import chaos

SEED = int(os.environ.get("ROOFLINED_SEED", random.randrange(2**32)))
SECONDS = 30


def test_chaos_loses_nothing(tmp_path):
    print(chaos.run(tmp_path, SEED, SECONDS))
