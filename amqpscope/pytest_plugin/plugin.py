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
    "what amqp_capture.record() does: record if that is permitted, and skip the test otherwise "
    "(if-permitted); fail the test if it is not permitted (required); run the test and record nothing (off)"
)
_ABOUT_CONFIG = (
    "to what amqp_capture holds captures: this amqpscope.toml, or pyproject.toml, instead of the one that is "
    "nearest, from the root directory upwards"
)
_ABOUT_FOLDER = "folder for what amqp_capture records, instead of tmp_path"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("amqpscope", "what tests say in AMQP (fixture amqp_capture)")
    group.addoption("--amqpscope-record", choices=_RECORD, help=_ABOUT_RECORD)
    parser.addini("amqpscope_record", _ABOUT_RECORD, default="if-permitted")
    parser.addini("amqpscope_config", _ABOUT_CONFIG, default="")
    parser.addini("amqpscope_folder", _ABOUT_FOLDER, default="")


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
