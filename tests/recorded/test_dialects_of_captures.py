"""No capture at hand is taken for the other dialect of AMQP 1.0: neither the final's ones nor the draft's.

With AMQPSCOPE_CAPTURES=FOLDER captures of one's own are read, too; their names show if they are the draft's.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.sampling import share

import amqpscope
from amqpscope.errors import CaptureError

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FOLDERS = [
    CAPTURES,
    *(Path(one) for one in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep) if one),
]
FILES = sorted(path for folder in FOLDERS for path in folder.rglob("*.pcap*") if path.is_file())

MIXED = "amqp10/C-DIALECT-1239"
"""Here, one peer speaks the draft."""

SHARE = 40


def of_draft(path: Path) -> bool:
    return "draft2011" in path.as_posix()


def shows_its_dialect(path: Path) -> bool:
    """Whether the frames that show the dialect are in a capture: a cut one of the draft may lack these."""
    return MIXED not in path.as_posix() and not (of_draft(path) and path.name == "cut.pcap")


def dialects(path: Path) -> set[str]:
    """The names of the connections of AMQP 1.0 in a capture, and the dialects of their frames."""
    found: set[str] = set()
    with path.open("rb") as file:
        for record in amqpscope.read(file):
            if record.connection.protocol.startswith("amqp10"):
                found |= {record.connection.protocol, record.frame.dialect}
    return found


@pytest.mark.parametrize("draft", [False, True])
def test_no_capture_is_taken_for_the_other_dialect(draft: bool) -> None:
    files = [path for path in FILES if of_draft(path) is draft and shows_its_dialect(path)]
    read = 0
    for path in share(files, SHARE, f"dialects {draft}"):
        try:
            found = dialects(path)
        except CaptureError:
            continue
        read += bool(found)
        others = (
            {"amqp10", "amqp10-unknown"} if draft else {"amqp10-draft2011", "amqp10-unknown", "draft2011"}
        )
        assert not found & others, path
    assert read
