"""What all tests share: Hypothesis profiles, the option to write golden outputs anew, and the marks."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.browser import CHROMIUM, Browser

# Tests that say that standard output is a terminal want no pager, but for those of the pager.
os.environ["AMQPSCOPE_PAGER"] = ""

# Programs that tests start import what the tests import: the installed package. Without this, `python -m` in
# the root of the repository imports the sources there, which are not compiled.
os.environ["PYTHONSAFEPATH"] = "1"

# Whoever starts the tests in the background of a shell has Ctrl-C ignored, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: how long an example takes depends on who else uses the machine.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "20000")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")


# A repository of its own, whose tests are run in it.
collect_ignore = ["sample"]


# What these say changes what pytest, Rich or this program print. CI sets some of them, a developer others.
_ABOUT_OUTPUT = (
    "BUILD_NUMBER",
    "CI",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
)


@pytest.fixture(scope="session", autouse=True)
def same_output_everywhere() -> Iterator[None]:
    """Tests and the programs that tests start do not see what the caller's environment says about output."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _ABOUT_OUTPUT:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of pages."""
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden outputs anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        missing = pytest.mark.skip(reason="there is no Chromium on the PATH")
        for item in items:
            if "chromium" in item.keywords:
                item.add_marker(missing)
    if shutil.which("tshark") is None:
        missing = pytest.mark.skip(reason="there is no tshark on the PATH")
        for item in items:
            if "tshark" in item.keywords:
                item.add_marker(missing)
