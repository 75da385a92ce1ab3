"""Two peers talk on one connection: what is the same whatever protocol they speak.

A dialogue of a protocol has the words of that protocol (`support.dialogue` those of AMQP 1.0,
`support.dialogue091` those of 0-9-1). Here is what stands behind them: octets are said, each time in a packet
of its own, they are heard or are not, and what was captured of that.

Time and acknowledgement. As `support.tcp_writer` has it: unless something else is said an end has heard all
that the other one said before, and acknowledges it with its next segment. So a peer *could* know it. That it
*must* have read it only what it says itself can show.

    with d.on_their_way():  neither end hears the other before the block is over
    with d.unheard(server): what the server says is not heard by the client before the block is over
    with d.together(client): what it says goes in one packet
    with d.missed():        exchanged, but not captured

A `Said` is what was said with one word; `packet_number(said)` is that of the packet that holds its first
octet, as Wireshark counts, whatever was cut out of the capture meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from support.tcp_writer import Capture, Connection, End, Packet

__all__ = ["Conversation", "Fault", "Said", "Speaker"]


class Said:
    """What a peer said: its octets, and the packet in which they begin."""

    def __init__(self, dialogue: Conversation, peer: Speaker, octets: bytes) -> None:
        self.dialogue = dialogue
        self.peer = peer
        self.octets = octets
        self.packet: Packet | None = None

    def called(self, label: str) -> Said:
        """Give it a name, by which a cut can take it out of the capture."""
        self.dialogue.labels[label] = self
        return self

    def breaks(self, rule: str, *, certain: bool = True, peer: str = "") -> Said:
        """This is a fault: the rule (without the dialogue's namespace) that it breaks."""
        self.dialogue.faults.append(Fault(rule, self, peer or self.peer.name, certain))
        return self

    def may_break(self, rule: str) -> Said:
        """This is a fault that no capture can prove."""
        return self.breaks(rule, certain=False)


class Fault:
    """A finding that is expected."""

    def __init__(self, rule: str, said: Said, peer: str, certain: bool) -> None:
        self.rule = rule
        self.said = said
        self.peer = peer
        self.certain = certain


class Speaker:
    """One of the two, with the words that any protocol has."""

    other: Any

    def __init__(self, dialogue: Any, name: str, end: End) -> None:
        self.dialogue = dialogue
        self.name = name
        self.end = end

    def say(self, octets: bytes) -> Said:
        """Any octets."""
        dialogue = self.dialogue
        said = Said(dialogue, self, octets)
        dialogue.said.append(said)
        if dialogue.joining is not None and dialogue.joining[0] is self:
            dialogue.joining[1].append(said)
        else:
            self._send([said])
        return said

    def _send(self, group: list[Said]) -> None:
        listener = self.other.end
        heard = listener.heard
        packets = self.end.send(b"".join(said.octets for said in group), each=self.dialogue.segment)
        if self.dialogue.unheard_of is self:
            listener.heard = heard
        size = self.dialogue.segment or self.dialogue.tcp.mss
        position = 0
        for said in group:
            said.packet = packets[position // size] if position // size < len(packets) else None
            position += len(said.octets)

    def acknowledge(self) -> None:
        """A bare acknowledgement of TCP's."""
        self.end.ack()

    def fin(self) -> Said:
        """The end of this peer's stream."""
        said = Said(self.dialogue, self, b"")
        said.packet = self.end.fin()
        self.dialogue.said.append(said)
        return said

    def rst(self) -> Said:
        said = Said(self.dialogue, self, b"")
        said.packet = self.end.rst()
        self.dialogue.said.append(said)
        return said


class Conversation:
    """The conversation of a client and a server on one connection.

    speaker, server_speaker: the class of both peers; of the server, where that is another
    wrong     for tests that tell a conversation twice: whether the fault is to be in it
    segment   octets of a TCP segment at most, 0 for the connection's mss
    """

    namespace = ""  # of the rules that its faults break
    speaker: type[Speaker] = Speaker
    server_speaker: type[Speaker] | None = None
    client: Any
    server: Any

    def __init__(
        self,
        *,
        wrong: bool = True,
        segment: int = 0,
        handshake: bool = True,
        capture: Capture | None = None,
        **connection: Any,
    ) -> None:
        self.wrong = wrong
        self.segment = segment
        self.capture = capture or Capture()
        self.tcp: Connection = self.capture.connection(**connection)
        self.client = self.speaker(self, "client", self.tcp.client)
        self.server = (self.server_speaker or self.speaker)(self, "server", self.tcp.server)
        self.client.other, self.server.other = self.server, self.client
        self.said: list[Said] = []
        self.labels: dict[str, Said] = {}
        # The edition of the specification that it is judged by.
        self.spec = "final"
        self.faults: list[Fault] = []
        self.joining: tuple[Speaker, list[Said]] | None = None
        self.unheard_of: Speaker | None = None
        if handshake:
            self.tcp.handshake()

    # ---- what happens on the way -------------------------------------------------------------------------

    @contextmanager
    def on_their_way(self) -> Iterator[None]:
        """Neither end has heard what the other one says in here before it is over."""
        with self.tcp.crossing():
            yield

    @contextmanager
    def unheard(self, peer: Speaker) -> Iterator[None]:
        """What `peer` says in here has not reached the other end before the block is over."""
        before, self.unheard_of = self.unheard_of, peer
        yield
        self.unheard_of = before
        peer.other.end.hears()

    @contextmanager
    def together(self, peer: Speaker) -> Iterator[None]:
        """What `peer` says in here goes out in one piece."""
        group: list[Said] = []
        self.joining = (peer, group)
        yield
        self.joining = None
        peer._send(group)

    @contextmanager
    def missed(self) -> Iterator[None]:
        """Exchanged, but the tap did not see it."""
        with self.capture.missed():
            yield

    def wait(self, **how_long: float) -> None:
        """Nothing is said for this long (`seconds=`, `milliseconds=`)."""
        self.capture.wait(**how_long)

    def again(self, client: str = "10.0.0.1:51035", **connection: Any) -> Self:
        """The same two on another connection, in the same capture. Its faults are this one's, too."""
        other = type(self)(
            wrong=self.wrong, segment=self.segment, capture=self.capture, client=client, **connection
        )
        other.said, other.labels, other.faults = self.said, self.labels, self.faults
        return other

    # ---- the capture -------------------------------------------------------------------------------------

    def packet_number(self, said: Said) -> int:
        """Of the packet with its first octet, as Wireshark counts; 0 if it was not captured."""
        for number, packet in enumerate(self.capture.packets, 1):
            if packet is said.packet:
                return number
        return 0

    def pcap(self) -> bytes:
        return self.capture.pcap(nanoseconds=True)
