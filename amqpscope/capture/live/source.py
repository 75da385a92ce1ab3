"""What all ways to capture live have in common."""

import contextlib
import os
import select
import time
from abc import ABC, abstractmethod

from amqpscope.capture.packet import PacketDecoder

__all__ = ["TAKEN_AT_ONCE", "LiveInterface", "LiveSource"]

TAKEN_AT_ONCE = 1024 * 1024
"""Octets of packets that one `take` deals with, about: some milliseconds of work, between which whoever
calls it looks at the clock, the keys and what the kernel dropped."""


class LiveInterface:
    """A network interface. description: its addresses, or what else tells it from others; may be "".

    link_type: of its packets as they are captured, a LINKTYPE value.
    """

    def __init__(self, name: str, description: str, link_type: int, up: bool) -> None:
        self.name = name
        self.description = description
        self.link_type = link_type
        self.up = up

    def __repr__(self) -> str:
        return f"LiveInterface({self.name!r}, {self.description!r}, {self.link_type}, {self.up})"


class LiveSource(ABC):
    """Packets from one or more interfaces, or a pipe, while they come.

        while not source.ended():
            source.wait(0.1)
            source.take(decoder)

    name: what messages call it. interfaces: whose packets come; those of `any` are added as their first
    packets do. A packet's interface is identified by its place in this list, which is
    `PacketDecoder.interface` while the packet is handed on. number: packets so far; the next is the one
    behind it.

    buffered: what has come is handed on a little later, from a buffer of the kernel's.

    It is used from one thread; only `wake` may be called from others, and from signal handlers.
    """

    buffered = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.interfaces: list[LiveInterface] = []
        self._events: list[str] = []
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._poll = select.poll()
        self._poll.register(self._wake_reader, select.POLLIN)

    @property
    @abstractmethod
    def number(self) -> int:
        """Packets handed on so far."""

    @abstractmethod
    def take(self, decoder: PacketDecoder) -> int:
        """Hand on what is there now, but only about `TAKEN_AT_ONCE` octets. How many packets that were.

        Where packets are known to be missing it stops in front of the one behind them, with `dropped` grown:
        what was lost, was lost after the packets handed on so far. It stops, too, in front of the first
        packet of an interface that it has added to `interfaces`.
        """

    @abstractmethod
    def dropped(self) -> int:
        """Packets that the kernel has had no room for, before the next packet to be handed on."""

    @abstractmethod
    def drops(self, index: int) -> int:
        """Those of `dropped` of one of `interfaces`.

        Several interfaces share the kernel's buffer, which does not know whose packets it dropped: they count
        for the interface of the packet that came before them.
        """

    def arrived(self) -> int | None:
        """Packets that have come so far: handed on, waiting to be, or dropped. None: nothing waits that the
        next `take` does not find.

        Once `number` and `dropped` together are as many, all of them are dealt with.
        """
        return None

    @abstractmethod
    def fill(self) -> float:
        """How much of the kernel's buffer waits to be taken, from 0 to 1."""

    @abstractmethod
    def ended(self) -> bool:
        """Whether nothing will ever come any more."""

    def wait(self, seconds: float) -> None:
        """Until there is something to take, or an event, or `wake`; at most so long."""
        deadline = time.monotonic() + (0 if self._waiting() else seconds)
        ready = False
        while not ready:
            left = deadline - time.monotonic()
            for descriptor, _ in self._poll.poll(max(left, 0) * 1000):
                if descriptor == self._wake_reader:
                    with contextlib.suppress(BlockingIOError):
                        os.read(descriptor, 4096)
                    ready = True
                elif self._stirred(descriptor):
                    ready = True
            if left <= 0:
                return

    def wake(self) -> None:
        """End a `wait`, or the next one if there is none."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_writer, b"\0")

    def take_events(self) -> list[str]:
        """What has happened to the interfaces since the last call: plain sentences without a full stop."""
        events, self._events = self._events, []
        return events

    def report_rest(self) -> None:  # noqa: B027  most sources hold nothing back
        """Nothing more comes: make events of what was held back, to be taken by `take_events`."""

    def take_remarks(self) -> list[tuple[int, str]]:
        """What is to be said of packets since the last call: the number of each, and the remark."""
        return []

    def close(self) -> None:
        """Stop capturing. A second call does nothing."""
        if self._wake_reader >= 0:
            self._poll.unregister(self._wake_reader)
            os.close(self._wake_reader)
            os.close(self._wake_writer)
            self._wake_reader = self._wake_writer = -1

    def __enter__(self) -> "LiveSource":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _waiting(self) -> bool:
        """Whether there is something to take that no descriptor tells of."""

    @abstractmethod
    def _stirred(self, descriptor: int) -> bool:
        """A descriptor that was registered with `_poll` is ready; whether that is what is waited for."""
