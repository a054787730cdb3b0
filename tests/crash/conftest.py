import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from harness import Daemon  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """start(*options, state=, env=): a daemon that is stopped at the end of the test."""
    started = []

    def one(*options, state=None, env=None, wait=True):
        made = Daemon(state or tmp_path / "state", *options, env=env, wait=wait)
        started.append(made)
        return made

    yield one
    for made in started:
        made.stop()
