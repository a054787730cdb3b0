"""A fixture that starts daemons for the tests of this folder."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from harness import Daemon  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """Returns start(*options, state=, env=, wait=), which starts a daemon and stops it at the end of the test."""
    daemons = []

    def start_one(*options, state=None, env=None, wait=True):
        daemon = Daemon(state or tmp_path / "state", *options, env=env, wait=wait)
        daemons.append(daemon)
        return daemon

    yield start_one
    for daemon in daemons:
        daemon.stop()
