import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from contract import Contract  # noqa: E402
from daemon import DOCUMENT, Daemon, job, make_token  # noqa: E402


@pytest.fixture(scope="session")
def contract():
    return Contract(DOCUMENT)


@pytest.fixture(scope="session")
def start(tmp_path_factory, contract):
    """start(*options, token=False, env=None): another daemon, stopped at the end of the session unless it was before."""
    started = []

    def one(*options, token=False, env=None, state=None):
        state = state or tmp_path_factory.mktemp("daemon") / "state"
        text = make_token(state) if token else None
        made = Daemon(state, contract, options, env)
        made.token = text
        started.append(made)
        return made

    yield one
    for made in started:
        made.stop()


@pytest.fixture(scope="session")
def daemon(start):
    """The one that most tests share; they leave its queue empty."""
    return start()


@pytest.fixture(scope="session")
def finished(daemon):
    """A completed job of two precisions under every pass."""
    return daemon.run(job(precisions=["fp32", "fp16"], epochs=2, passes=["timing", "activity", "counters"]))
