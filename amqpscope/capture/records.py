"""What the readers of all capture formats share: any chunking in, whole records out, and damage survived.

Theory of operation. `feed` takes the file's octets in blocks of any size. A reader's `_consume` works on a
buffer from a position, handles every record that lies in it whole, and says where it stopped and, in
`_need`, how many octets from there it wants before it can go on. What is left of a block is carried over;
the next block gives exactly the octets that are missing, so a record across two blocks costs one copy of
that record, and records within a block none. All decisions rest on the file's octets alone, never on
where a block ended: any chunking gives the same calls.

A reader is in one of four modes. START: the file's own header comes next. RECORDS: a record does. SEARCH:
the record at `_damage` was not credible. STOPPED: nothing after this can be read.

SEARCH looks at each place behind the damage for one from which records follow one another. One plausible
header proves little, and even a chain of them may be a capture file that was itself carried as somebody's
payload: such a false chain cannot outlive the packet that carries it. So a chain is believed when it has
`SEARCH_CHAIN` records *and* reaches beyond the largest packet that is likely to lie there, or when it has
`SEARCH_TAIL` and meets the end of the file exactly. Work is bounded by `SEARCH_STEPS` and `SEARCH_OCTETS`.
"""

from abc import abstractmethod
from typing import Any, Final

from amqpscope.capture.file_reader import FileReader
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.sink import SegmentSink
from amqpscope.limits import SEARCH_CHAIN, SEARCH_OCTETS, SEARCH_REACH, SEARCH_STEPS, SEARCH_TAIL
from dissectors.wire import i64
from dissectors.wording import are, count

START: Final = 0
RECORDS: Final = 1
SEARCH: Final = 2
STOPPED: Final = 3

NOT_CREDIBLE: Final = -1
INCOMPLETE: Final = -2

_VERSION: Final = 5  # of the state that `dump` gives


class CaptureReader(FileReader):
    """Reads a capture file that is fed to it from its first octet and hands its packets to a decoder.

    `number`: packets so far, counted as Wireshark does. `decoder`: its counters. `offset`: octets of the
    file that are dealt with.
    """

    def __init__(self, sink: SegmentSink, decoder: PacketDecoder | None = None) -> None:
        super().__init__()
        self.decoder = PacketDecoder(sink) if decoder is None else decoder
        self.sink = sink
        self.offset: i64 = 0
        self._origin: i64 = 0  # file offset of index 0 of the buffer in hand
        self._carry = bytearray()
        self._need: i64 = 1
        self._final = False  # the file has ended: what is in hand is all there is
        self._mode: i64 = START
        self._time: i64 = 0  # of the last packet
        # SEARCH and STOPPED: file offset of the damage and what it is. SEARCH: file offset that a chain must
        # reach. Records looked at in all searches so far.
        self._damage: i64 = 0
        self._reach: i64 = 0
        self._steps: i64 = 0
        self._reason = ""

    def feed(self, block: bytes) -> None:
        """The next octets of the file, as many as the caller likes (1 MiB is a good size)."""
        at: i64 = 0
        size: i64 = len(block)
        while len(self._carry) > 0:
            missing: i64 = self._need - len(self._carry)
            if missing > size - at:
                self._carry += block[at:]
                return
            self._carry += block[at : at + missing]
            at += missing
            joined = bytes(self._carry)
            used = self._advance(joined, 0, len(joined))
            self._carry = bytearray(joined[used:])
        used = self._advance(block, at, size)
        if used < size:
            self._carry = bytearray(block[used:])

    def place(self, index: i64) -> i64:
        """The offset in the file of octet `index` of the buffer that a sink is lent just now."""
        return self._origin + index

    def finish(self) -> None:
        """The file has ended. Says what was cut short or not read. A second call does nothing."""
        if self._final:
            return
        self._final = True
        rest = bytes(self._carry)
        self._carry = bytearray()
        used = self._advance(rest, 0, len(rest))
        if self._mode == RECORDS and self._tail_follows(rest, used + 1, len(rest)):
            used = self._damaged(used, "a record claims to end after the end of the file")
            self.offset = self._origin + used
            used = self._advance(rest, used, len(rest))
        left: i64 = len(rest) - used
        if self._mode == STOPPED:
            self._note(
                "capture/corrupt",
                f"at offset {self._damage}: {self._reason}; no valid record follows, and "
                f"{self.offset - self._damage} octets are not read",
            )
        elif left > 0:
            missing = int(self._need - left)
            self._note(
                "capture/truncated",
                f"the file ends inside the record at offset {self.offset}: the {left} octets of this record "
                f"are not read, and at least {count(missing, 'octet')} {are(missing)} missing",
            )
        self._end()
        self.decoder.finish()

    def dump(self) -> tuple[Any, ...]:
        """The state as plain values, the octets carried over among them."""
        return (
            _VERSION,
            self.number,
            self.offset,
            bytes(self._carry),
            self._need,
            self._final,
            self._mode,
            self._time,
            self._damage,
            self._reach,
            self._steps,
            self._reason,
            self.decoder.dump(),
        )

    def _restore(self, state: tuple[Any, ...]) -> None:
        """Take over what `dump` gave. Raises ValueError on another version's state."""
        if not state or state[0] != _VERSION:
            raise ValueError(f"state of a capture reader in version {state[:1]}, not {_VERSION}")
        (
            _,
            number,
            offset,
            carry,
            need,
            final,
            mode,
            time,
            damage,
            reach,
            steps,
            reason,
            decoder,
        ) = state
        self.number = number
        self.offset = offset
        self._carry = bytearray(carry)
        self._need = need
        self._final = final
        self._mode = mode
        self._time = time
        self._damage = damage
        self._reach = reach
        self._steps = steps
        self._reason = reason
        self.decoder = PacketDecoder.load(decoder, self.sink)

    def _end(self) -> None:
        """All that the file has is dealt with: say what is known only now."""

    def _advance(self, buf: bytes, at: i64, end: i64) -> i64:
        """Deal with `buf[at:end]`, the octets from file offset `offset` on; gives back where it stopped."""
        self._origin = self.offset - at
        used = self._consume(buf, at, end)
        self.offset = self._origin + used
        return used

    def _consume(self, buf: bytes, at: i64, end: i64) -> i64:
        """Deal with as much of `buf[at:end]` as possible; gives back where it stopped, and sets `_need`."""
        while True:
            if self._mode == RECORDS:
                at = self._records(buf, at, end)
                if self._mode == RECORDS:
                    return at
            elif self._mode == START:
                at = self._start(buf, at, end)
                if self._mode == START:
                    return at
            elif self._mode == SEARCH:
                at = self._search(buf, at, end)
                if self._mode == SEARCH:
                    return at
            else:
                self._need = 1
                return end

    @abstractmethod
    def _start(self, buf: bytes, at: i64, end: i64) -> i64:
        """The file's header at `at`. Stays in START to ask for `_need` octets."""

    @abstractmethod
    def _records(self, buf: bytes, at: i64, end: i64) -> i64:
        """The records from `at` on. Stays in RECORDS to ask for `_need` octets."""

    @abstractmethod
    def _step(self, buf: bytes, at: i64, end: i64, first: bool) -> i64:
        """Where the record after the one at `at` starts, if that one is credible; negative if not.

        The position given back may lie beyond `end`. INCOMPLETE: it takes more octets to tell. `first`: the
        one that a chain would begin with, against which later ones may be compared.
        """

    @abstractmethod
    def _window(self) -> i64:
        """Octets from any place within which its chain is decided, wherever the file ends."""

    def _damaged(self, at: i64, reason: str) -> i64:
        """The record at `at` is not credible: search behind it. Gives back where to go on."""
        self._mode = SEARCH
        self._damage = self._origin + at
        self._reach = self._damage + SEARCH_REACH
        self._reason = reason
        return at + 1

    def _stop(self, at: i64, end: i64, reason: str) -> i64:
        """Nothing from `at` on can be read."""
        self._mode = STOPPED
        self._damage = self._origin + at
        self._reason = reason
        return end

    def _search(self, buf: bytes, at: i64, end: i64) -> i64:
        """Look for a chain from `at` on: RECORDS at its first, STOPPED, or wants `_need` octets."""
        window = self._window()
        limit: i64 = self._damage + SEARCH_OCTETS - self._origin
        while at < end and (self._final or end - at >= window):
            if at >= limit or self._steps > SEARCH_STEPS:
                self._mode = STOPPED
                return end
            if self._step(buf, at, end, True) != NOT_CREDIBLE and self._chain(buf, at, end):
                self._mode = RECORDS
                self._note(
                    "capture/corrupt",
                    f"at offset {self._damage}: {self._reason}; {self._origin + at - self._damage} octets "
                    f"are skipped, and reading continues at offset {self._origin + at}",
                )
                return at
            at += 1
        if self._final:
            self._mode = STOPPED
        # Twice what one place needs, so that octets are moved once for many places.
        self._need = 2 * window
        return at

    def _chain(self, buf: bytes, at: i64, end: i64) -> bool:
        """Whether records follow one another from `at` on, far enough to be believed."""
        records: i64 = 0
        while True:
            if records >= SEARCH_TAIL and self._final and at == end:
                break
            if records >= SEARCH_CHAIN and self._origin + at >= self._reach:
                break
            following: i64 = INCOMPLETE
            if at < end:
                following = self._step(buf, at, end, records == 0)
            if following == INCOMPLETE and records >= SEARCH_CHAIN:
                break  # the file ends inside this record
            if following < 0:
                self._steps += records
                return False
            records += 1
            at = following
        self._steps += records
        return True

    def _tail_follows(self, buf: bytes, at: i64, end: i64) -> bool:
        """Whether records from `at` or some place behind it on meet the end of the file exactly.

        Then the record before them was not cut short: it is damaged.
        """
        limit: i64 = at + self._window()
        steps: i64 = 0
        while at < end and at < limit and steps <= SEARCH_STEPS:
            place: i64 = self._step(buf, at, end, True)
            records: i64 = 1
            while 0 <= place < end:
                place = self._step(buf, place, end, False)
                records += 1
            if place == end and records >= SEARCH_TAIL:
                return True
            steps += records - 1
            at += 1
        return False

    def _note(self, code: str, detail: str) -> None:
        """Something about the file, at the packet last read."""
        self.decoder.notes.add(code, self.number, self._time, detail)
