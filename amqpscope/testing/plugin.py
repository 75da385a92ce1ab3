"""What pytest loads: the options, and the fixture `amqp_capture`.

It is loaded in every run of pytest wherever this package is installed, so it imports nothing but pytest until
a test asks for the fixture.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from amqpscope.testing.fixture import AmqpCapture

__all__ = ["amqp_capture", "pytest_addoption"]

_RECORD = ("if-permitted", "required", "off")
_ABOUT_RECORD = (
    "what amqp_capture.record() does: record if that is permitted, and skip the test otherwise "
    "(if-permitted); fail the test if it is not permitted (required); run the test and record nothing (off)"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("amqpscope", "what tests say in AMQP (fixture amqp_capture)")
    group.addoption("--amqpscope-record", choices=_RECORD, help=_ABOUT_RECORD)
    parser.addini("amqpscope_record", _ABOUT_RECORD, default="if-permitted")
    parser.addini("amqpscope_folder", "folder for what amqp_capture records, instead of tmp_path", default="")


@pytest.fixture
def amqp_capture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["AmqpCapture"]:
    """Holds AMQP traffic against the specification, and fails the test for what breaks it.

    `with amqp_capture.record(port=5672): ...` records what the test says meanwhile, and judges it;
    `amqp_capture.check(path)` judges a capture file.
    """
    config = request.config
    how = config.getoption("--amqpscope-record") or config.getini("amqpscope_record")
    if how not in _RECORD:
        raise pytest.UsageError(f"amqpscope_record: must be one of {', '.join(_RECORD)}, not {how!r}")
    folder = config.getini("amqpscope_folder")
    kept = config.rootpath / folder if folder else None
    from amqpscope.testing.fixture import AmqpCapture

    capture = AmqpCapture(request.node, how, tmp_path, kept)
    yield capture
    capture.close()
