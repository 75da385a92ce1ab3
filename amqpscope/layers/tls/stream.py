"""One direction of a TLS connection: the octets of TCP in, the application data out.

Theory of operation. Octets are cut into records; a record belongs to the packet that completed it. In the
clear and decrypted, records carry handshake messages and alerts, which go to the session, and application
data, which go on.

*Loss.* Where only a part of a record is missing, the record is lost, and the next one begins where its header
says. Where a header is missing, too, the next record is searched for: whatever looks like a header is tried,
with as many record numbers as fit into what is missing, until one authenticates. What was lost is reported at
once, as a hole of unknown size, unless the size shows how much application data the record had.
"""

from bisect import bisect_right
from typing import Any, Final

from amqpscope.layers.interface import LayerStream
from amqpscope.layers.places import Places
from amqpscope.layers.tls.ciphers import (
    APPLICATION,
    EARLY,
    HANDSHAKE,
    Aead12,
    RecordCipher,
    Traffic13,
    load_cipher,
)
from amqpscope.layers.tls.records import HEADER, SMALLEST, Candidates, plausible
from amqpscope.layers.tls.session import ALERT, CHANGE_CIPHER, DATA, MESSAGES, HeldOctets, TlsSession
from amqpscope.limits import (
    MAX_TLS_EARLY,
    MAX_TLS_FAILED_RECORDS,
    MAX_TLS_HANDSHAKE,
    MAX_TLS_LOST_RECORDS,
    MAX_TLS_TRIALS,
    MAX_TLS_TRIALS_ALL,
)
from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

__all__ = ["TlsStream"]

_DEAR: Final = 4096
"""Octets of a record that take as long to decrypt as an attempt takes without them."""

_BEFORE: Final = 64
"""Octets before a record that its decryption may ask for: a block, and an HMAC behind it."""

_NONE_OPENS: Final = "octets were not captured, and no record after them could be decrypted"


class TlsStream(LayerStream):
    """One direction. session: what it shares with the other one. header: octets in front of the records.
    They were seen whole before the stream is made.
    """

    def __init__(self, session: TlsSession, direction: int, header: int) -> None:
        super().__init__()
        self.header: i64 = header
        self.session: TlsSession = session
        self.direction: int = direction
        # The cipher of the records that come, and those that may follow; empty in the clear.
        self.chain: list[RecordCipher] = []
        # The records are protected and cannot be read; only their headers are looked at, while these are
        # found.
        self.opaque: bool = False
        self.blind: bool = False
        # The octets that make no whole record yet, and where the first of them stands in TCP's stream.
        self.pending: bytearray = bytearray()
        self.at: i64 = 0
        # Where a record may begin among them, while one is searched for; where each piece of them begins, and
        # where it comes from.
        self.candidates: Candidates | None = None
        self.pieces: list[tuple[int, Provenance]] = []
        # Octets that are missing since the last record that authenticated, and records that did not.
        self.missing: i64 = 0
        self.failed: i64 = 0
        # Attempts to open a record that failed since.
        self.trials: i64 = 0
        # Octets of a lost record that still come, and the last octets of those that came.
        self.skip: i64 = 0
        self.tail: bytes = b""
        # Handshake messages that are not whole; octets of one are missing.
        self.messages: bytearray = bytearray()
        # Octets handed on; at which octet of TCP's stream how many of them were there.
        self.given: i64 = 0
        self.places: Places = Places()
        # 0-RTT data of which it is not known whether the server takes them.
        self.early: list[tuple[bytes, int, Provenance]] = []
        self.early_octets: i64 = 0

    # From TCP

    def begin_at(self, offset: i64) -> None:
        self.at = offset

    def join(self, offset: i64) -> None:
        """The capture begins in the middle: the octets from this offset of TCP's stream on come first."""
        self.given = offset
        self.places.add(offset, offset, True)
        self.begin_search(offset)

    @property
    def searching(self) -> bool:
        """Whether it is not known where the next record begins."""
        return self.candidates is not None

    @property
    def joining(self) -> bool:
        """Whether the first record that opens will show the keys of this direction."""
        return (self.session.midstream or self.session.unheard) and not self.chain and not self.opaque

    def inner(self, outer: i64) -> i64:
        return self.places.inner(outer)

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        if self.header > 0:
            size = min(self.header, end - start)
            self.above.data(self.given, buf, start, start + size, provenance)
            self.header -= size
            self.given += size
            start += size
            offset += size
            self.at = offset
            self.places.add(offset, self.given, True)
            if self.header == 0:
                self.above.secured()
        if self.session.lacking:
            self.session.hold(HeldOctets(self.direction, offset, buf[start:end], 0, provenance))
            return
        if self.skip > 0:
            skipped = min(self.skip, end - start)
            self.skip -= skipped
            self.tail = (self.tail + buf[start : start + skipped])[-_BEFORE:]
            start += skipped
            offset += skipped
            self.at = offset
        if self.opaque:
            self.leave(offset + (end - start), provenance)
        if self.blind:
            self.at = offset + (end - start)
        if self.blind or start == end:
            return
        if self.searching:
            if not self.pending:
                self.at = offset
            self.pieces.append((offset, provenance))
            self.pending += buf[start:end]
            self.search()
        elif self.pending:
            self.pending += buf[start:end]
            self.take_pending(provenance)
        else:
            self.at = offset
            used = self.records(buf, start, end, provenance)
            self.keep(buf[used:end], provenance)

    def keep(self, octets: bytes, provenance: Provenance) -> None:
        """The beginning of a record, or octets to search for one."""
        if self.blind or not octets:
            return
        if self.session.lacking:
            self.session.hold(HeldOctets(self.direction, self.at, octets, 0, provenance))
            return
        self.pending += octets
        if self.searching:
            self.pieces = [(self.at, provenance)]
            self.search()

    def take_pending(self, provenance: Provenance) -> None:
        """Take the whole records of the octets that are held."""
        octets = self.pending
        if len(octets) >= HEADER and len(octets) < HEADER + (octets[3] << 8 | octets[4]):
            if plausible(octets, 0):
                return
        held = bytes(octets)
        self.pending = bytearray()
        used = self.records(held, 0, len(held), provenance)
        self.keep(held[used:], provenance)

    def records(self, buf: bytes, pos: i64, end: i64, provenance: Provenance) -> i64:
        """Take the whole records of buf[pos:end], the first of which is at `at`. Gives the index behind."""
        while end - pos >= HEADER:
            if not plausible(buf, pos):
                self.lose_track(provenance)
                break
            size = HEADER + (buf[pos + 3] << 8 | buf[pos + 4])
            if end - pos < size:
                break
            self.at += size
            self.record(buf[pos : pos + HEADER], buf[pos + HEADER : pos + size], self.at, provenance)
            pos += size
            if self.blind:
                return end
            if self.session.lacking:
                break
        return pos

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        place = Provenance(packet, time, -1)
        if self.session.lacking:
            self.session.hold(HeldOctets(self.direction, offset, b"", size, place))
            return
        if self.opaque:
            self.blind = True
            self.pending = bytearray()
            self.at = offset + size
            self.leave(self.at, place)
        if self.blind:
            return
        if self.joining:
            self.missing += size
            self.begin_search(offset + size)
            return
        begun = len(self.pending)
        if not self.chain and begun > HEADER and self.pending[0] == MESSAGES:
            # The record that is torn has messages in front of the hole.
            self.handshake(bytes(self.pending[HEADER:]), place)
        if not self.chain:
            self.session.recover(self.direction, place)
            if self.opaque:
                self.blind = True
                return
        self.missing += size
        inside = min(size, self.skip)
        self.skip -= inside
        if inside == size:
            return
        if inside == 0 and not self.searching and begun >= HEADER:
            rest = HEADER + (self.pending[3] << 8 | self.pending[4]) - begun
            if size <= rest:
                self.lose_record(size, rest, place)
                return
        self.missing += begun
        self.begin_search(offset + size)
        self.places.tear(offset, self.given)
        self.tear(self.given, size, packet, time)

    def leave(self, outer: i64, place: Provenance) -> None:
        """The octets up to this one of TCP's stream are not read. Where others of the connection are read,
        these are reported as missing, so that nobody takes the direction for silent.
        """
        size = outer - self.places.end()
        if size > 0 and self.session.facts.decrypted:
            self.above.tear(self.given, size, place.packet, place.time)
            self.given += size
            self.places.add(outer, self.given, True)

    def tear(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        """Report so many octets of TCP as a hole of unknown size."""
        if offset == self.given:
            self.above.tear(self.given, size, packet, time)
            self.given += size
            self.place(self.at)
        else:
            self.gap(offset, size, packet, time)

    def finish(self, reason: str) -> None:
        if self.joining and (self.session.sought or self.session.tried[self.direction] > 0):
            self.session.cannot_join(self.direction, _provenance_at(self.pieces, self.at))
        while self.session.lacking:
            self.session.resume(True)
        if self.searching and self.trials > 0:
            self.session.unreadable(self.direction, _NONE_OPENS, _provenance_at(self.pieces, self.at))
        self.give_early(self.session.early != "refused")
        self.above.finish(reason)

    # Loss

    def lose_record(self, size: i64, rest: i64, place: Provenance) -> None:
        """`size` octets of the record begun are missing, of the `rest` that it has. `missing` counts them."""
        kind = self.pending[0]
        body = (self.pending[3] << 8) | self.pending[4]
        unsure = self.missing > size or self.failed > 0
        self.missing += len(self.pending) + rest - size
        self.at += len(self.pending) + size
        self.tail = b""
        self.pending = bytearray()
        self.messages = bytearray()
        self.skip = rest - size
        if kind != DATA or not self.chain:
            return
        now = self.chain[0]
        if isinstance(now, Traffic13) and now.stage == HANDSHAKE and not unsure:
            return
        if isinstance(now, Aead12) and self.failed == 0 and now.carried(body) >= 0:
            carried = now.carried(body)
            self.above.gap(self.given, carried, place.packet, place.time)
            self.given += carried
            self.place(self.at + self.skip)
        else:
            self.above.tear(self.given, body, place.packet, place.time)
            self.given += body
            self.place(self.at + self.skip)

    def begin_search(self, offset: i64) -> None:
        """From this offset of TCP's stream on, the next record is searched for."""
        self.pending = bytearray()
        self.pieces = []
        self.messages = bytearray()
        self.skip = 0
        self.tail = b""
        self.at = offset
        self.candidates = Candidates(offset)

    def lose_track(self, provenance: Provenance) -> None:
        """What comes is no record."""
        if self.joining:
            self.missing += SMALLEST
            self.begin_search(self.at)
            return
        if self.opaque or not self.chain:
            self.session.unreadable(self.direction, "the next octets are not a TLS record", provenance)
            self.blind = True
            return
        self.missing += SMALLEST
        self.begin_search(self.at)
        self.tear(self.given, SMALLEST, provenance.packet, provenance.time)

    def search(self) -> None:
        """Look for a record that authenticates among the octets that are held."""
        candidates = self.candidates
        assert candidates is not None
        held = bytes(self.pending)
        for first in candidates.take_whole(held, self.at):
            start = first - self.at
            size = HEADER + (held[start + 3] << 8 | held[start + 4])
            before = held[max(start - _BEFORE, 0) : start]
            content = self.open(held[start : start + HEADER], held[start + HEADER : start + size], before)
            if content is not None:
                self.found(held, start, size, content)
            elif self.trials > 2 * MAX_TLS_TRIALS:
                self.session.unreadable(self.direction, _NONE_OPENS, self.pieces[-1][1])
            if content is not None or self.blind:
                return
        kept = max(candidates.needed(self.at + len(held)) - self.at - _BEFORE, 0)
        self.missing += kept
        self.pending = bytearray(held[kept:])
        self.at += kept
        oldest = bisect_right(self.pieces, self.at, key=lambda piece: piece[0]) - 1
        del self.pieces[: max(oldest, 0)]

    def found(self, held: bytes, pos: i64, size: i64, content: bytes) -> None:
        """A record of `size` octets at held[pos:] authenticates: go on behind it."""
        self.candidates = None
        pieces = self.pieces
        self.pieces = []
        self.pending = bytearray()
        first = self.at
        self.at += pos + size
        self.content(self.chain[0].kind, content, self.at, _provenance_at(pieces, self.at - 1))
        pos += size
        while len(held) - pos >= HEADER and not (self.searching or self.blind or self.session.lacking):
            size = HEADER + (held[pos + 3] << 8 | held[pos + 4])
            if len(held) - pos < size:
                break
            place = _provenance_at(pieces, first + pos + size - 1)
            used = self.records(held, pos, pos + size, place)
            if used == pos:
                break
            pos = used
        self.keep(held[pos:], _provenance_at(pieces, first + len(held) - 1))

    # Records

    def record(self, header: bytes, body: bytes, outer: i64, provenance: Provenance) -> None:
        """A whole record, which ends at the octet `outer` of TCP's stream."""
        kind = header[0]
        if not self.session.facts.agreed:
            self.session.follow(self.direction, kind, provenance)
        if self.opaque:
            if kind == ALERT:
                self.session.alert(self.direction, body, provenance)
        elif not self.chain or (kind != DATA and (self.session.tls13 or not self.session.version)):
            if self.joining and self.session.sealed(self.direction, int(kind)):
                content = self.open(header, body, self.tail if self.missing or self.failed else None)
                if content is None:
                    self.tail = body[-_BEFORE:]
                    self.failed += 1
                else:
                    self.content(self.chain[0].kind, content, outer, provenance)
            elif kind != DATA:
                self.content(kind, body, outer, provenance)
            elif self.session.early:
                self.tear(self.given, len(body), provenance.packet, provenance.time)
        else:
            content = self.open(header, body, self.tail if self.missing or self.failed else None)
            if content is None:
                self.tail = body[-_BEFORE:]
                self.fail(len(body), provenance)
            else:
                self.content(self.chain[0].kind, content, outer, provenance)

    def open(self, header: bytes, body: bytes, before: bytes | None) -> bytes | None:
        """What a record carries, None if it opens with no cipher and no number that it may have."""
        if self.joining:
            return self.open_first(header, body, before)
        reach: int = 0
        chain = self.chain
        if self.missing or self.failed:
            reach = int(self.reach())
            last = chain[-1] if chain else None
            if isinstance(last, Traffic13) and last.stage == APPLICATION:
                chain = [*chain, last.updated()]
        for index, cipher in enumerate(chain):
            first = 0 if index else cipher.number
            for number in range(first, first + reach + 1):
                content = cipher.open(number, header, body, before)
                if content is not None:
                    cipher.number = number + 1
                    if index > 0 or chain is not self.chain:
                        self.chain = chain[index:]
                    self.missing = self.failed = self.trials = 0
                    self.tail = b""
                    return content
        trials = len(chain) * (reach + 1) * (1 + len(body) // _DEAR)
        self.trials += trials
        self.session.context.secrets.trials += trials
        return None

    def open_first(self, header: bytes, body: bytes, before: bytes | None) -> bytes | None:
        """The same, while the client random is not known. Where the handshake shows that application data
        were lost before the record, that is reported.
        """
        place = _provenance_at(self.pieces, self.at)
        lost = int(self.reach()) if self.missing or self.failed else 0
        content = self.session.join(self.direction, header, body, before, lost, place)
        if content is not None:
            now = self.chain[0]
            missing = max(self.missing, SMALLEST)
            self.missing = self.failed = 0
            self.tail = b""
            # Before TLS 1.3 the first record is of the handshake.
            first = 1 if self.session.tls13 else 2
            if self.session.unheard and now.stage == APPLICATION and now.number > first:
                self.tear(self.given, missing, place.packet, place.time)
        return content

    def reach(self) -> i64:
        """How many record numbers may have been lost."""
        most = MAX_TLS_LOST_RECORDS
        if self.trials > MAX_TLS_TRIALS or self.session.context.secrets.trials > MAX_TLS_TRIALS_ALL:
            most = 1
        return min(self.missing // SMALLEST + self.failed + 1, most)

    def fail(self, size: i64, provenance: Provenance) -> None:
        """A record with a body of so many octets does not authenticate."""
        now = self.chain[0]
        self.failed += 1
        early = self.session.early and now.stage == HANDSHAKE
        begun = now.number > 0 or self.given > 0 or early
        if self.failed > MAX_TLS_FAILED_RECORDS or not (begun or self.missing):
            what = (
                f"the secret for the client random {self.session.facts.random} does not belong to this "
                "connection"
            )
            self.session.unreadable(self.direction, what, provenance)
            return
        self.tear(self.given, size, provenance.packet, provenance.time)

    def content(self, kind: i64, octets: bytes, outer: i64, provenance: Provenance) -> None:
        """What a record carries, in the clear or decrypted."""
        if kind == DATA:
            self.application(octets, outer, provenance)
        elif kind == MESSAGES:
            self.handshake(octets, provenance)
        elif kind == ALERT:
            self.session.alert(self.direction, octets, provenance)
        elif kind == CHANGE_CIPHER and not self.session.tls13 and self.session.version:
            self.messages = bytearray()
            self.session.change_cipher(self.direction, provenance)

    def handshake(self, octets: bytes, provenance: Provenance) -> None:
        """Octets of handshake messages."""
        messages = self.messages
        messages += octets
        while len(messages) >= 4:
            size = 4 + int.from_bytes(messages[1:4], "big")
            if size > MAX_TLS_HANDSHAKE:
                messages.clear()
                break
            if len(messages) < size:
                break
            kind, body = messages[0], bytes(messages[4:size])
            del messages[:size]
            self.session.message(self.direction, kind, body, provenance)

    def advance(self, stage: int) -> None:
        """The ciphers of this stage, or a later one, hold from here on."""
        while len(self.chain) > 1 and self.chain[0].stage < stage:
            del self.chain[0]

    def application(self, octets: bytes, outer: i64, provenance: Provenance) -> None:
        """Application data."""
        if self.chain and self.chain[0].stage == EARLY and self.session.early != "taken":
            self.early_octets += len(octets)
            if self.session.early == "offered" and self.early_octets <= MAX_TLS_EARLY:
                self.early.append((octets, outer, provenance))
            return
        self.session.facts.established = True
        if octets:
            self.session.decrypted(provenance)
            self.above.data(self.given, octets, 0, len(octets), provenance)
            self.given += len(octets)
            self.place(outer)

    def give_early(self, taken: bool) -> None:
        """It is known whether the server takes 0-RTT data: hand on what is held, or drop it."""
        early = self.early
        self.early = []
        if taken and early:
            self.session.early = "taken"
            for octets, outer, provenance in early:
                self.application(octets, outer, provenance)

    def place(self, outer: i64) -> None:
        """All octets handed on so far are carried by the first `outer` of TCP's."""
        self.places.add(outer, self.given)

    def be_opaque(self) -> None:
        """The records cannot be read."""
        self.opaque = True
        self.chain = []
        self.early = []
        self.messages = bytearray()
        self.skip = 0
        if self.searching:
            self.blind = True
            self.pending = bytearray()

    # Between processes

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        return (
            tuple(cipher.dump() for cipher in self.chain),
            (self.opaque, self.blind, self.searching),
            (self.at, self.missing, self.failed, self.trials, self.skip, self.given, self.early_octets),
            (bytes(self.pending), self.tail, bytes(self.messages)),
            tuple((offset, place.dump()) for offset, place in self.pieces),
            self.places.dump(),
            tuple((octets, outer, place.dump()) for octets, outer, place in self.early),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        chain, flags, numbers, octets, pieces, places, early = state
        self.chain = [load_cipher(cipher) for cipher in chain]
        self.opaque, self.blind, searching = flags
        self.at, self.missing, self.failed, self.trials, self.skip, self.given, self.early_octets = numbers
        pending, self.tail, messages = octets
        self.pending, self.messages = bytearray(pending), bytearray(messages)
        self.pieces = [(offset, Provenance(*place)) for offset, place in pieces]
        self.candidates = Candidates(self.at) if searching else None
        self.places = Places.load(places)
        self.early = [(data, outer, Provenance(*place)) for data, outer, place in early]


def _provenance_at(pieces: list[tuple[int, Provenance]], offset: int) -> Provenance:
    """Where the octet at an offset comes from."""
    if not pieces:
        return Provenance(0, 0, -1)
    return pieces[max(bisect_right(pieces, offset, key=lambda piece: piece[0]) - 1, 0)][1]
