"""Texts that wait for the end of a capture: in order, whatever they hold, in memory or in a file."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpscope.report import backlog as module
from amqpscope.report.backlog import Backlog


@given(st.lists(st.tuples(st.integers(0, 2**70), st.text(st.characters(), max_size=40))), st.integers(0, 200))
def test_texts_come_in_the_order_of_their_numbers(entries: list[tuple[int, str]], in_memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BACKLOG_OCTETS", in_memory)
        backlog = Backlog()
        for number, text in entries:
            backlog.put(number, text)
        assert len(backlog) == len(entries)
        # The sort is stable, so texts of one number are expected as they came.
        assert list(backlog) == sorted(entries, key=lambda entry: entry[0])
        backlog.close()


def test_half_of_a_surrogate_pair_comes_back() -> None:
    backlog = Backlog()
    backlog.put(0, "\ud800 \udcff")
    assert list(backlog) == [(0, "\ud800 \udcff")]


def test_a_full_disk_is_named_by_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "BACKLOG_OCTETS", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Full:
        """A file on a disk without room."""

        def write(self, octets: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    backlog = Backlog()
    monkeypatch.setattr(backlog, "_file", Full())
    with pytest.raises(OSError) as raised:
        backlog.put(0, "text")
    assert (raised.value.filename, raised.value.errno) == (str(tmp_path), errno.ENOSPC)
