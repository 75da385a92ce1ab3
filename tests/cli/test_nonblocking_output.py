"""Output that nobody reads keeps nobody waiting."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from amqpscope.cli.nonblocking_output import NonBlockingOutput
from amqpscope.limits import OUTLET_OCTETS


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 65_536):
        parts.append(part)
    return b"".join(parts)


def test_all_is_written_in_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outlet = NonBlockingOutput(writing)
    wanted = "".join(f"line {number} é\n" for number in range(1000))
    for line in wanted.splitlines(keepends=True):
        assert outlet.offer(line)
    assert outlet.close()
    os.close(writing)
    assert read_all(reading).decode() == wanted


def test_what_nobody_reads_is_refused_beyond_the_bound_and_written_when_somebody_does(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    outlet = NonBlockingOutput(writing)
    text = "x" * (256 * 1024 - 1) + "\n"
    taken = 0
    while outlet.offer(text):
        taken += 1
        assert taken * len(text) <= OUTLET_OCTETS
    assert not outlet.room
    assert (taken + 1) * len(text) > OUTLET_OCTETS
    got = 0
    while got < taken * len(text):
        got += len(os.read(reading, 1 << 20))
    assert outlet.close()
    assert outlet.room


def test_a_reader_that_has_gone(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    outlet = NonBlockingOutput(writing)
    assert outlet.offer("text\n")
    assert not outlet.close()
    assert isinstance(outlet.error, BrokenPipeError)
    assert outlet.offer("more\n")


def test_a_stuck_reader_does_not_hold_the_end(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.cli.nonblocking_output.OUTLET_PATIENCE", 0.01)
    reading, writing = pipe
    outlet = NonBlockingOutput(writing)
    assert outlet.offer("x" * (1 << 20))
    assert not outlet.close()
    # Its thread is to be over before the pipe is: the descriptor's number will be another's.
    got = 0
    while got < 1 << 20:
        got += len(os.read(reading, 1 << 16))
    monkeypatch.undo()
    assert outlet.close()


def test_a_terminal_that_others_made_not_to_wait(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    outlet = NonBlockingOutput(writing)
    assert outlet.offer("y" * (1 << 20))
    got = 0
    while got < 1 << 20:
        got += len(os.read(reading, 1 << 16))
    assert outlet.close()
