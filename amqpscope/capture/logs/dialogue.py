"""The entries of one connection become the two streams of a TCP connection."""

from typing import Final

from amqpscope.capture.logs.entries import ENDED, HEADER, LOST, Entry, LineFormat
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import CAPTURED, UNORDERED, SegmentSink
from amqpscope.limits import MAX_LOG_HELD, MAX_LOG_OPENING

__all__ = ["Dialogue"]

_FIN: Final = 0x01
_SYN: Final = 0x02
_ACK: Final = 0x10
_LATEST: Final = (1 << 63) - 1  # a line may have any year
_SERVER_PORT: Final = 5672
_LOST_OCTETS: Final = 64  # so many are missing in a stream where a frame is

_AMQP: Final = b"AMQP\0\1\0\0"
_SASL: Final = b"AMQP\3\1\0\0"
_TLS: Final = b"AMQP\2\1\0\0"

_OPENINGS: Final = ("open", "connection.start")
"""With these a connection begins, unless something stands before that the log need not have."""
_OF_CLIENT: Final = ("sasl-init", "sasl-response")
_OF_SERVER: Final = ("sasl-mechanisms", "sasl-challenge", "sasl-outcome")


class Dialogue:
    """One connection of a log. number: which connection of the log it is, from 1; the port of its client.
    form: of the log.

    A log has no addresses: the connection is `0.0.0.0:NUMBER>0.0.0.0:5672`. It begins with SYN if the log has
    its beginning. Entries wait until it is known who the client is: the sender of a frame that only clients
    send, else the first to send anything.
    """

    def __init__(self, sink: SegmentSink, number: int, form: type[LineFormat]) -> None:
        self._sink = sink
        self._retold = form.retold
        client = number.to_bytes(2, "big")
        server = _SERVER_PORT.to_bytes(2, "big")
        self._keys = (bytes(8) + client + server, bytes(8) + server + client)
        self._waiting: list[Entry] = []
        # The client is the endpoint whose log this is; None until it is known.
        self._client_logs: bool | None = None
        # Octets sent by the client and by the server.
        self._sent = [1, 1]
        # Which protocol headers each of the two has sent, and whether it has opened, closed or ended.
        self._headers: tuple[set[bytes], set[bytes]] = (set(), set())
        self._opened = [False, False]
        self._closed = [False, False]
        self._ended = [False, False]
        # The log has the beginning of the connection.
        self._whole = False
        self._exact = form.exact
        self._ordered = form.ordered
        self._of_client = form.of_client
        self._greeting = form.greeting
        self._causes = None if form.causes is None else form.causes()
        # Entries of one sender; the first of them must stand behind one that has not come.
        self._held: list[Entry] = []
        # The library prints protocol headers: one that is not in the log was not sent.
        self._prints_headers = form.prints_headers
        # The log has one of this connection.
        self._headers_seen = False
        # The sink knows whose log this is.
        self._announced = False

    def is_over(self, entry: Entry) -> bool:
        """Whether an entry is of another connection, to which the library gives the same name."""
        by = 0 if entry.sent else 1
        if entry.name == HEADER:
            return entry.octets in self._headers[by] or all(self._closed) or all(self._ended)
        if self._prints_headers or self._headers_seen:
            return False
        # Only what a connection begins with shows that another one has begun, if the first one broke off.
        if entry.name in _OPENINGS:
            return self._opened[by] or self._closed[by]
        return any(self._opened) and entry.name in ("sasl-mechanisms", "sasl-init")

    def is_closed(self) -> bool:
        """Whether both sides have closed the connection: what comes now is of another one."""
        return all(self._closed)

    def lose(self, line: int) -> None:
        """A line was lost that may have been of either direction."""
        for sent in (True, False):
            self.take(Entry("", sent, LOST, b"", 0, line))

    def take(self, entry: Entry) -> None:
        """The next entry of the log. Of two senders, it is put behind what must have come first."""
        causes = self._causes
        if causes is None:
            self._take(entry)
            return
        held = self._held
        if held and held[0].sent == entry.sent and entry.name != LOST and len(held) < MAX_LOG_HELD:
            held.append(entry)
            return
        if not held and entry.name != LOST and causes.lacks(entry):
            held.append(entry)
            return
        if held and (entry.name == LOST or not causes.gives(entry, held[0])):
            self._release(True)
            if entry.name != LOST and causes.lacks(entry):
                self._held.append(entry)
                return
        self._settle(entry)
        self._release(False)

    def _settle(self, entry: Entry) -> None:
        if self._causes is not None and entry.name != LOST:
            self._causes.saw(entry)
        self._take(entry)

    def _release(self, all_of_them: bool) -> None:
        """Take what is held, up to the next entry that must stand behind another one.

        The line that was to come before a held one is the next of the other sender: who waits for more than
        that waits in vain.
        """
        waiting, self._held = self._held, []
        for at, entry in enumerate(waiting):
            if at and not all_of_them and self._causes is not None and self._causes.lacks(entry):
                self._held = waiting[at:]
                return
            self._settle(entry)

    def _take(self, entry: Entry) -> None:
        by = 0 if entry.sent else 1
        if entry.name == HEADER:
            self._headers[by].add(entry.octets)
            self._headers_seen = True
        elif entry.name in _OPENINGS:
            self._opened[by] = True
        elif entry.name == "close":
            self._closed[by] = True
        elif entry.name == ENDED:
            self._ended[by] = True
        if self._client_logs is not None:
            self._give(entry)
            return
        self._waiting.append(entry)
        if entry.name in (HEADER, LOST) and len(self._waiting) < MAX_LOG_OPENING:
            return
        self._begin()

    def finish(self) -> None:
        """Give what still waits."""
        self._release(True)
        self._begin()

    def _begin(self) -> None:
        """Find out who the client is, and give what has waited for that."""
        if self._client_logs is not None or not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._client_logs = waiting[0].sent
        for entry in waiting:
            if entry.name in _OF_CLIENT:
                self._client_logs = entry.sent
            elif entry.name in _OF_SERVER:
                self._client_logs = not entry.sent
        if self._of_client:
            self._client_logs = True
        first = waiting[0]
        self._whole = first.name == HEADER or (
            not self._prints_headers and first.name in (*_OPENINGS, "sasl-mechanisms", *_OF_CLIENT)
        )
        last = waiting[-1]
        if first.name == HEADER and last.name not in (HEADER, LOST):
            other = last.sent != first.sent or self._client_logs != first.sent
            if other and not self._headers[1 if first.sent else 0]:
                # The log begins between the two headers.
                waiting.insert(0, Entry("", not first.sent, LOST, b"", 0, first.line))
                self._whole = False
        if self._whole or waiting[0].name == LOST:
            self._sent = [0, 0]
            self._segment(first, 0, b"", _SYN)
            self._segment(first, 1, b"", _SYN | _ACK)
            self._segment(first, 0, b"", _ACK)
        if self._whole and self._greeting:
            self._segment(first, 0, self._greeting, _ACK)
        for entry in waiting:
            self._give(entry)

    def _give(self, entry: Entry) -> None:
        """The segment of one entry, behind a protocol header that the library does not print."""
        direction = 0 if entry.sent == self._client_logs else 1
        if entry.name == LOST:
            self._sent[direction] += _LOST_OCTETS
            return
        if entry.name == ENDED:
            self._segment(entry, direction, b"", _FIN | _ACK)
            return
        if entry.octets == _TLS and entry.name == HEADER:
            return  # what follows is printed as it is under TLS
        if (
            entry.name != HEADER
            and self._whole
            and not self._prints_headers
            and not self._headers_seen
            and not self._greeting
        ):
            header = _SASL if entry.name.startswith("sasl-") else _AMQP
            sent = self._headers[0 if entry.sent else 1]
            if header not in sent and (entry.name == "open" or header == _SASL):
                sent.add(header)
                self._segment(entry, direction, header, _ACK)
        self._segment(entry, direction, entry.octets, _ACK)

    def _segment(self, entry: Entry, direction: int, octets: bytes, flags: int) -> None:
        """Hand one segment on. It acknowledges all that the other side has sent by then."""
        if not self._announced:
            # Under the key of the first segment: it may be one of the server.
            self._announced = True
            own = direction if self._client_logs else 1 - direction
            if not self._exact:
                own = CAPTURED if self._ordered else UNORDERED
            self._sink.logged(self._keys[direction], own, self._retold)
        segment = Segment()
        segment.key, segment.reverse = self._keys[direction], self._keys[1 - direction]
        segment.packet = entry.line
        segment.time = min(entry.time, _LATEST)
        segment.seq = self._sent[direction] & 0xFFFFFFFF
        segment.ack = self._sent[1 - direction] & 0xFFFFFFFF if flags & _ACK else -1
        segment.flags = flags
        segment.buf = octets
        segment.end = len(octets)
        self._sent[direction] += len(octets) + (1 if flags & (_SYN | _FIN) else 0)
        self._sink.segment(segment)
