"""`cut --report`: a folder to attach to a bug report."""

import contextlib
import os
import platform
import shutil
from collections.abc import Callable

from amqpscope import __version__
from amqpscope.cli.cut import CUT_NAME
from amqpscope.cli.draw import draw_capture
from amqpscope.cli.inputs import CaptureArgument
from amqpscope.cli.selection import Selection
from amqpscope.cutting.cut import CutSource
from amqpscope.errors import OutputError
from amqpscope.input.ahead import size_of
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.policy.judging import judge
from amqpscope.policy.policy import Policy
from amqpscope.report.finding_counts import Detail
from amqpscope.report.forms import ReportOptions, declared

__all__ = ["files_of_report", "new_folder", "write_report"]

_MOST = 10

_FINDINGS, _PAGE, _VERSIONS, _ABOUT = "findings.md", "page.html", "versions.txt", "README.md"

_README = """\
# A report of amqpscope

- `cut.pcapng`: the capture. Each finding is a comment on its packet (in Wireshark: `frame.comment`).
- `findings.md`: what `amqpscope check cut.pcapng` reports.
- `page.html`: the conversation as a page that loads nothing.
- `versions.txt`: the versions of amqpscope, of Python and of the system.
{anonymised}
`amqpscope triage cut.pcapng` shows what is wrong and who has to act.
"""

_ANONYMISED = """
The capture is anonymised: names, addresses, credentials and data are replaced by values of the same size.
"""


def new_folder(path: str) -> Callable[[], None]:
    """Make a folder; one that is there has to be empty. Raises OutputError.

    Returns what removes it, and the folders above it that were made, as long as they are empty.
    """
    missing: list[str] = []
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)

    def remove() -> None:
        with contextlib.suppress(OSError):
            for folder in missing:
                os.rmdir(folder)

    try:
        os.makedirs(path, exist_ok=True)
        if os.listdir(path):
            raise OutputError(f"{path}: the folder is not empty")
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    return remove


def files_of_report(folder: str) -> list[str]:
    """The files that `write_report` writes."""
    return [os.path.join(folder, name) for name in (CUT_NAME, _FINDINGS, _PAGE, _VERSIONS, _ABOUT)]


class _Cut:
    """The capture of the report, as the findings name it."""

    def __init__(self, path: str, source: CutSource) -> None:
        self.name = CUT_NAME
        self._path = path
        self._source = source

    @property
    def size(self) -> int:
        return size_of([self._path])

    def open(self, options: CaptureOptions) -> Capture:
        return self._source.open(self._path, CUT_NAME)


def write_report(folder: str, cut: str, source: CutSource, anonymised: bool) -> None:
    """Write a report of the cut at `cut`, which is copied if it is not in the folder already.

    source: how it is read. Raises OutputError.
    """
    capture = os.path.join(folder, CUT_NAME)
    policy = Policy()
    try:
        if not os.path.exists(capture):
            shutil.copyfile(cut, capture)
        with open(os.path.join(folder, _FINDINGS), "w", encoding="utf-8") as file:
            options = ReportOptions(policy.terms, _MOST, Detail(possible=True, notes=True))
            writer = declared("markdown").writer(file, options)
            judge([_Cut(capture, source)], policy, hearer=writer, gather=False)
        versions = f"amqpscope {__version__}\nPython {platform.python_version()}\n{platform.platform()}\n"
        _write(folder, _VERSIONS, versions)
        _write(folder, _ABOUT, _README.format(anonymised=_ANONYMISED if anonymised else ""))
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    # There, so that the page does not name folders of this machine.
    with contextlib.chdir(folder):
        draw_capture(CaptureArgument([CUT_NAME]), _PAGE, Selection())


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
