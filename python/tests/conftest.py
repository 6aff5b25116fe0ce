"""What holds for every test: all of them run in one process, so that each leaves it as it was.

FINETTI_TEST_SIZE says on how many random inputs laws are tried: small (under sanitizers), usual (`make check`), more
(check-all), full (check-long). They are the same in every run, and none is judged by a clock.
"""

import gc
import os
import signal
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import finetti

os.environ.setdefault("FINETTI_THREADS", "1")  # as in ctest: a test that is about threads asks for them
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # for the tests in all/ and long/

EXAMPLES = {"small": 3, "usual": 10, "more": 60, "full": 300}
for size, examples in EXAMPLES.items():
    settings.register_profile(size, max_examples=examples, derandomize=True, deadline=None, database=None,
                              suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("FINETTI_TEST_SIZE", "usual"))


def state():
    """What belongs to the process, and not to a test."""
    found = {"threads of the library": finetti.get_threads(), "folder": os.getcwd(), "collector": gc.isenabled(),
             "handlers": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM)],
             "timer": signal.getitimer(signal.ITIMER_REAL), "errors": np.geterr(),
             "modules set to None": [name for name, module in list(sys.modules.items()) if module is None],
             "threads": sorted(thread.name for thread in threading.enumerate()
                               if not type(thread).__module__.startswith("tqdm"))}  # its monitor stays
    # PYTEST_CURRENT_TEST is pytest's own, and changes within a test.
    found.update(("$" + name, value) for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST")
    return found


@pytest.fixture(autouse=True)
def leaves_the_process_as_it_was():
    before = state()
    yield
    after = state()
    changed = {name: (before.get(name), after.get(name)) for name in {*before, *after}
               if before.get(name) != after.get(name)}
    assert not changed


@pytest.fixture
def two_threads():
    """The library with two threads, whatever the environment says: for tests of what happens between them."""
    finetti.set_threads(2)
    yield
    finetti.set_threads(0)


@pytest.fixture
def processes():
    """The processes that joblib started end with the test."""
    yield
    from joblib.externals.loky import get_reusable_executor
    get_reusable_executor().shutdown(wait=True)


def pytest_terminal_summary(terminalreporter):
    """A line for each test that was skipped, which tests/run.sh looks for in tests/skips.txt."""
    for report in terminalreporter.stats.get("skipped", []):
        file, _, name = report.nodeid.partition("::")
        stem = os.path.splitext(os.path.basename(file))[0]
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = " ".join(reason.split())
        terminalreporter.write_line(f"SKIPPED: {stem}::{name.partition('[')[0] or 'all'}: "
                                    f"{reason[9:] if reason.startswith('Skipped: ') else reason}")
