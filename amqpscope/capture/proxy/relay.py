"""One forwarded connection: octets of each side go to the other one, and packets show what went."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Final

from amqpscope.capture.proxy.faults import Fault
from amqpscope.capture.proxy.gate import Gate
from amqpscope.capture.proxy.packets import (
    ACK,
    CLIENT,
    FIN,
    MOST_OCTETS,
    PSH,
    RST,
    SERVER,
    SYN,
    SyntheticConnection,
)
from amqpscope.capture.proxy.side import Side

__all__ = ["Exchange", "Relay"]

_ENOUGH: Final = 128 * 1024
"""Octets that wait for one side, from which on the other side is not read."""

_FEW: Final = 32 * 1024
"""Octets that wait for one side, from which on the other side is read again."""

_UNANSWERED: Final = 64 * 1024
"""Octets without an acknowledgement in a packet, from which on one is made."""

_SOON: Final = 0.04
"""Seconds after which an acknowledgement is shown that no octets brought: as long as TCP of Linux waits."""

_LATER: Final = 0.5
"""Seconds between two looks at octets that the peer's host does not acknowledge."""

_BRIEF: Final = 0.1
"""Seconds for which a side is not read before the packets say so. AMQP counts silences in seconds."""

_LINGER: Final = 30.0
"""Seconds in which a side is given what its peer had sent before a reset."""


class Exchange(ABC):
    """Where relays put their packets."""

    loop: asyncio.AbstractEventLoop

    @property
    @abstractmethod
    def full(self) -> bool:
        """Whether packets wait that are enough for now."""

    @abstractmethod
    def emit(self, packet: bytes, time: int = 0) -> None:
        """A packet of this time (ns since 1970), 0: of now."""

    @abstractmethod
    def remark(self, text: str) -> None:
        """Something that the recording says of the newest packet."""

    @abstractmethod
    def report(self, text: str) -> None:
        """Something that users have to know."""

    @abstractmethod
    def over(self, relay: "Relay") -> None:
        """A relay is over, and its sockets are closed."""


class Relay:
    """Forwards between `sides`: the client and the server. name: of the client, in reports."""

    def __init__(
        self,
        exchange: Exchange,
        connection: SyntheticConnection,
        client: Side,
        server: Side,
        name: str,
        faults: Sequence[Fault] = (),
    ) -> None:
        self.sides = (client, server)
        self.name = name
        self._exchange = exchange
        self._loop = exchange.loop
        self._connection = connection
        # How much of its peer's stream each side has acknowledged in packets.
        self._acknowledged = [0, 0]
        self._ended = [False, False]  # the end of its stream was read
        self._read = [False, False]  # its socket is being read
        self._written = [False, False]  # its socket is waited for, to take more
        self._closing: list[asyncio.TimerHandle | None] = [None, None]
        self._looking: asyncio.TimerHandle | None = None
        self._reset_by = -1  # the side that has reset the connection
        self._lingering: asyncio.TimerHandle | None = None
        self._patience = _LINGER
        self._stopped = False  # nothing is read any more
        self._over = False
        self._faults = faults
        seen: Counter[str] = Counter()
        # For each direction by its sender, if there are faults.
        self._gates = [self._gate(side, seen) for side in (CLIENT, SERVER)] if faults else []

    def _gate(self, side: int, seen: Counter[str]) -> Gate:
        """Where faults happen to what a side sends."""
        return Gate(
            self._loop,
            self._faults,
            seen,
            lambda octets: self._deliver(side, octets),
            self._exchange.remark,
            lambda: self._was_reset(side, dropped=True),
        )

    def start(self) -> None:
        """Begin to forward."""
        for side in (CLIENT, SERVER):
            self._listen(side)
            self._take(side, *self.sides[side].read_early())

    @property
    def waiting(self) -> int:
        """Octets that were read and not handed on."""
        return sum(self._held(side) for side in (CLIENT, SERVER))

    def _held(self, side: int) -> int:
        """Octets that were read for a side and not handed on."""
        return self.sides[side].waiting + (self._gates[1 - side].waiting if self._gates else 0)

    def stop_reading(self) -> None:
        """Read no more. What was read is still handed on."""
        self._stopped = True
        for side in (CLIENT, SERVER):
            self._ignore(side)

    def close(self, reset: bool = False) -> None:
        """Close both sockets. reset: by RST."""
        if self._over:
            return
        self._over = True
        for side in (CLIENT, SERVER):
            self._ignore(side)
            self._leave(side)
            timer = self._closing[side]
            if timer is not None:
                timer.cancel()
            self.sides[side].close(reset)
        for gate in self._gates:
            gate.close()
        for timer in (self._looking, self._lingering):
            if timer is not None:
                timer.cancel()
        self._exchange.over(self)

    def was_blind(self, since: int, until: int) -> None:
        """Nothing was read between these times (ns): no peer could be seen to write."""
        for side in (CLIENT, SERVER):
            if not self._ended[side]:
                self._show_window(1 - side, False, since)
        for side in (CLIENT, SERVER):
            if self._closing[side] is None:
                self._show_window(1 - side, True, until)

    # Octets.

    def _listen(self, side: int) -> None:
        if not (self._read[side] or self._ended[side] or self._stopped or self._over):
            self._read[side] = True
            self._loop.add_reader(self.sides[side].raw.fileno(), self._readable, side)

    def _ignore(self, side: int) -> None:
        if self._read[side]:
            self._read[side] = False
            self._loop.remove_reader(self.sides[side].raw.fileno())

    def _readable(self, side: int) -> None:
        if self._exchange.full:
            return  # the loop will call again
        try:
            try:
                octets, ended = self.sides[side].read()
            except OSError:
                self._was_reset(side)
            else:
                self._take(side, octets, ended)
        except Exception as error:
            self._fail_within(error)

    def _take(self, side: int, octets: bytes, ended: bool) -> None:
        """Octets of a side were read, perhaps its last ones."""
        if octets:
            self._forward(side, octets)
        self._flushed(side)
        if ended and not self._over and not self._ended[side]:
            self._end(side)

    def _fail_within(self, error: Exception) -> None:
        """An error of ours ends this connection."""
        self._exchange.report(f"internal error while forwarding for {self.name}: {error!r}")
        self.close(True)

    def _forward(self, side: int, octets: bytes) -> None:
        """Octets of a side were read."""
        other = 1 - side
        for at in range(0, len(octets), MOST_OCTETS):
            if self._connection.sent(side) - self._acknowledged[other] >= _UNANSWERED:
                self._show_acknowledgement(other)
            self._emit(side, PSH | ACK, octets[at : at + MOST_OCTETS])
        if self._gates:
            self._gates[side].take(octets)
        else:
            self._deliver(side, octets)
        if self._over:
            return
        if self._held(other) > _ENOUGH:
            self._pause(side)
        if self._looking is None:
            self._looking = self._loop.call_later(_SOON, self._look)

    def _deliver(self, side: int, octets: bytes) -> None:
        """Octets of a side are handed on."""
        other = 1 - side
        try:
            self.sides[other].write(octets)
        except OSError:
            self._went_deaf(other)
            return
        self._flushed(other)
        if self._gates:
            self._handed_on(other)

    def _flushed(self, side: int) -> None:
        """Octets may wait for a side: its socket is waited for, if so."""
        if self.sides[side].waiting and not self._written[side] and not self._over:
            self._written[side] = True
            self._loop.add_writer(self.sides[side].raw.fileno(), self._writable, side)

    def _leave(self, side: int) -> None:
        if self._written[side]:
            self._written[side] = False
            self._loop.remove_writer(self.sides[side].raw.fileno())

    def _writable(self, side: int) -> None:
        try:
            self._hand_on(side)
        except Exception as error:
            self._fail_within(error)

    def _hand_on(self, side: int) -> None:
        """A side takes octets again."""
        try:
            self.sides[side].flush()
        except OSError:
            self._leave(side)
            self._went_deaf(side)
            return
        if not self.sides[side].waiting:
            self._leave(side)
        self._handed_on(side)

    def _handed_on(self, side: int) -> None:
        """Less waits for a side."""
        held = self._held(side)
        if held <= _FEW and self._reset_by < 0:
            self._resume(1 - side)
        if not held and self._ended[1 - side] and self._reset_by < 0:
            self._hand_on_end(side)
        else:
            self._conclude()

    def _pause(self, side: int) -> None:
        """Do not read a side for now: the other one does not take what it has sent."""
        self._ignore(side)
        if self._closing[side] is None:
            self._closing[side] = self._loop.call_later(_BRIEF, self._show_window, 1 - side, False)

    def _resume(self, side: int) -> None:
        timer = self._closing[side]
        if timer is not None:
            timer.cancel()
            self._closing[side] = None
            self._show_window(1 - side, True)
        self._listen(side)

    # Ends.

    def _end(self, side: int) -> None:
        """A side sends no more."""
        self._ignore(side)
        self._ended[side] = True
        other = 1 - side
        if self.sides[side].deaf:
            self._was_reset(side)
            return
        self._emit(side, FIN | ACK)
        if not self._gates or not self._gates[side].waiting:
            self._hand_on_end(other)

    def _hand_on_end(self, side: int) -> None:
        """All octets for a side were written: so is the end of the stream."""
        try:
            self.sides[side].end()
        except OSError:
            self._went_deaf(side)
            return
        self._flushed(side)
        self._conclude()

    def _conclude(self) -> None:
        """Close the sockets, if both streams are over and handed on."""
        if self._reset_by >= 0:
            self._hand_on_reset()
        elif all(self._ended) and all(side.shut for side in self.sides):
            for side in (CLIENT, SERVER):
                self._show_acknowledgement(side)
            self.close()

    def _went_deaf(self, side: int) -> None:
        """A side has reset the connection, as writing to it shows. What it has sent before is read first."""
        self.sides[side].forget()
        self._ignore(1 - side)
        if self._ended[side] or self._reset_by >= 0:
            self._was_reset(side)
        else:
            self._listen(side)

    def _was_reset(self, side: int, dropped: bool = False) -> None:
        """A side has reset the connection, and nothing is left to be read from it.

        dropped: the proxy does it instead. No packet says then that a peer did, and both windows are 0 from
        now on, because nobody sees what the peers would go on to write.
        """
        if self._over or self._reset_by >= 0:
            self.close(True)
            return
        self._ended[side] = True
        self._reset_by = side
        if dropped:
            for one in (CLIENT, SERVER):
                self._show_window(one, False)
        else:
            self._emit(side, RST | ACK)
        self.stop_reading()
        self.sides[side].forget()
        self._leave(side)
        self._hand_on_reset()

    def _hand_on_reset(self) -> None:
        """Reset the other side, once it has what was sent before."""
        if self._over:
            return
        other = self.sides[1 - self._reset_by]
        left = self._held(1 - self._reset_by) + other.unacknowledged()
        if other.deaf or self._patience <= 0 or not left:
            self.close(True)
        elif self._lingering is None:
            self._lingering = self._loop.call_later(_SOON, self._linger)

    def _linger(self) -> None:
        self._lingering = None
        self._patience -= _SOON
        self._hand_on_reset()

    def fail(self, side: int) -> None:
        """The side does not speak TLS as it has to: it is as if it had reset the connection."""
        self._emit(side, RST | ACK)
        self.close(True)

    # Packets.

    def open(self) -> None:
        """The packets with which a connection begins."""
        self._emit(CLIENT, SYN)
        self._emit(SERVER, SYN | ACK)
        self._emit(CLIENT, ACK)
        for fault in self._faults:
            self._exchange.remark(f"the proxy was asked for a fault: {fault.text}")

    def _emit(self, side: int, flags: int, octets: bytes = b"", time: int = 0) -> None:
        acknowledged = self._acknowledged[side]
        if flags & ACK:
            acknowledged = max(acknowledged, self.sides[side].acknowledged())
            self._acknowledged[side] = min(acknowledged, self._connection.sent(1 - side))
        self._exchange.emit(self._connection.packet(side, flags, acknowledged, octets), time)

    def _show_acknowledgement(self, side: int) -> None:
        """A packet without octets, if the side's host has acknowledged more than the packets show."""
        if self.sides[side].acknowledged() > self._acknowledged[side]:
            self._emit(side, ACK)

    def _look(self) -> None:
        """What the hosts have acknowledged since."""
        self._looking = None
        for side in (CLIENT, SERVER):
            self._show_acknowledgement(side)
        behind = [self._connection.sent(1 - side) > self._acknowledged[side] for side in (CLIENT, SERVER)]
        if any(behind) and not self._over and self._reset_by < 0:
            self._looking = self._loop.call_later(_LATER, self._look)

    def _show_window(self, side: int, is_open: bool, time: int = 0) -> None:
        """A packet that says whether a side's window has room for what the other one writes."""
        if self._connection.window_is_open(side) != is_open:
            self._connection.set_window(side, is_open)
            self._emit(side, ACK, time=time)
