"""What pytest loads: the options, and the fixture `amqp_capture`.

It is loaded in every run of pytest wherever this package is installed, so it imports nothing but pytest until
a test asks for the fixture.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from amqpscope.pytest_plugin.fixture import AmqpCapture

__all__ = ["amqp_capture", "pytest_addoption"]

_RECORD = ("if-permitted", "required", "off")
_ABOUT_RECORD = (
    "whether amqp_capture.record() records. if-permitted: it records, and skips the test where recording is "
    "not permitted. required: it records, and fails the test where recording is not permitted. off: it "
    "records nothing."
)
_ABOUT_CONFIG = (
    "configuration file of amqp_capture: an amqpscope.toml or a pyproject.toml (default: the nearest one in "
    "the root directory of the tests or above it)"
)
_ABOUT_FOLDER = "folder in which amqp_capture keeps its recordings (default: tmp_path)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("amqpscope", "AMQP traffic of tests (fixture amqp_capture)")
    group.addoption("--amqpscope-record", choices=_RECORD, help=_ABOUT_RECORD)
    parser.addini("amqpscope_record", _ABOUT_RECORD, default="if-permitted")
    parser.addini("amqpscope_config", _ABOUT_CONFIG, default="")
    parser.addini("amqpscope_folder", _ABOUT_FOLDER, default="")


@pytest.fixture
def amqp_capture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["AmqpCapture"]:
    """Checks AMQP traffic by the specification, and fails the test if a peer breaks it.

    `with amqp_capture.record(port=5672): ...` records the traffic of the block and checks it.
    `amqp_capture.check(path)` checks a capture file.
    """
    config = request.config
    how = config.getoption("--amqpscope-record") or config.getini("amqpscope_record")
    if how not in _RECORD:
        raise pytest.UsageError(f"amqpscope_record: must be one of {', '.join(_RECORD)}, not {how!r}")
    folder, file = config.getini("amqpscope_folder"), config.getini("amqpscope_config")
    kept = config.rootpath / folder if folder else None

    from amqpscope.errors import ConfigurationError
    from amqpscope.policy.configuration import find_configuration, read_configuration
    from amqpscope.pytest_plugin.fixture import AmqpCapture

    try:
        if file:
            configuration = read_configuration(str(config.rootpath / file))
        else:
            configuration = find_configuration(str(config.rootpath))
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None
    capture = AmqpCapture(request.node, how, tmp_path, kept, configuration)
    yield capture
    capture.close()
