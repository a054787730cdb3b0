import contextlib
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from contract import Contract  # noqa: E402
from daemon import DOCUMENT, Daemon, job, make_token  # noqa: E402
from digits import mnist  # noqa: E402


@pytest.fixture(scope="session")
def contract():
    return Contract(DOCUMENT)


@pytest.fixture(scope="session")
def start(tmp_path_factory, contract):
    """start(*options, token=False, env=None): another daemon, stopped at the end of the session unless it was before.
    start.started: all of them, in order."""
    digits = mnist(tmp_path_factory.mktemp("digits"), test=640)

    def one(*options, token=False, env=None, state=None):
        state = state or tmp_path_factory.mktemp("daemon") / "state"
        text = make_token(state) if token else None
        made = Daemon(state, contract, ("--mnist-dir", str(digits), *options), env)
        made.token = text
        one.started.append(made)
        return made

    one.started = []
    yield one
    with contextlib.ExitStack() as all_of_them:
        for made in one.started:
            all_of_them.callback(made.stop)


@pytest.fixture(scope="session")
def daemon(start):
    """The one that most tests share; they leave its queue empty."""
    return start()


@pytest.fixture(scope="session")
def finished(daemon):
    """A completed job of two precisions under every pass."""
    return daemon.run(job(precisions=["fp32", "fp16"], epochs=2, passes=["timing", "activity", "counters"]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    item.failed = report.failed or getattr(item, "failed", False)


@pytest.fixture(autouse=True)
def tidy(request, start):
    """A test that fails stays one failure: it says how its daemons are, those of its own end, and the shared ones are put
    right."""
    before = len(start.started)
    yield
    if not getattr(request.node, "failed", False):
        return
    own = start.started[before:]
    shared = [made for made in start.started[:before] if made in request.node.funcargs.values()]
    for made in shared + own:
        print(made.condition())
    for made in own:
        made.kill()
    for made in shared:
        made.recover()
