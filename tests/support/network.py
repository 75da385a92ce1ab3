"""What lies between two peers and a capture: their hosts, the wire, and the tap on it.

`converse` lets the two peers of a `Talk` speak while chance decides when octets leave a host, arrive at the
other one, and are read there; what went over the wire is the conversation's `segments`. `Tap` says where a
capture of it was made and what it missed; `captured` writes it.

    conversation = converse("seed", protocol="amqp091")
    capture = captured(conversation, Tap(position=1.0))
    capture.octets, capture.segments            # a pcap file, and the number of each packet's segment

What a host acknowledges is what it has received, at the time when the segment leaves it. Its program has read
no more than that, mostly less; what the program said last may be waiting to be sent. So a frame's segment
acknowledges all that its writer knew, and often more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.legal import CLIENT, SERVER, Said, Talk
from support.legal091 import Talk091
from support.legal_draft2011 import Talk2011
from support.tcp_writer import ACK, FIN, PSH, SYN, Capture

__all__ = ["PROTOCOLS", "Captured", "Conversation", "Network", "Segment", "Tap", "captured", "converse"]

MSS = 1448

_TALKS: dict[str, type[Talk] | type[Talk091]] = {
    "amqp10": Talk,
    "amqp091": Talk091,
    "amqp10-draft2011": Talk2011,
}

PROTOCOLS = tuple(_TALKS)
"""That peers can talk, by the namespace of their rules."""


@dataclass(slots=True)
class Segment:
    """One segment. start: where its octets stand in its sender's stream. ack: octets of the other stream,
    and one more for its FIN. sent, arrived: ns; a segment that the network lost has arrived = -1."""

    side: int
    start: int
    octets: bytes
    ack: int
    flags: int
    sent: int
    arrived: int = 0
    lost_at: float = 2.0  # after which part of the way it was lost


@dataclass
class Conversation:
    """What two peers said, how it went over the wire. races: a peer spoke while something was under way."""

    talk: Talk | Talk091
    segments: list[Segment]
    races: bool
    seed: str = ""

    def said(self) -> list[Said]:
        """All frames, each peer's in order; the two peers' roughly in the order they were written."""
        return sorted([*self.talk.said[0], *self.talk.said[1]], key=lambda s: (s.start, s.side))

    def transcript(self) -> str:
        """Readable: segments in the order they left, with the frames that begin in each."""
        lines = [self.seed]
        done = [0, 0]
        for number, segment in enumerate(self.segments):
            if not segment.octets:
                continue
            end = segment.start + len(segment.octets)
            lost = "" if segment.arrived >= 0 else " LOST"
            lines.append(f"#{number} {'CS'[segment.side]} {segment.start}..{end} ack {segment.ack}{lost}")
            stream = self.talk.said[segment.side]
            while done[segment.side] < len(stream) and stream[done[segment.side]].start < end:
                lines.append(f"      {stream[done[segment.side]]}")
                done[segment.side] += 1
        return "\n".join(lines)


class Network:
    """The two hosts and the wire between them. Time is simulated: each happening takes a while."""

    def __init__(self, talk: Talk | Talk091, random: Random) -> None:
        self.talk = talk
        self.random = random
        self.clock = 1_700_000_000_000_000_000
        self.segments: list[Segment] = []
        self.wire: tuple[deque[Segment], deque[Segment]] = (deque(), deque())
        self.lost: tuple[list[Segment], list[Segment]] = ([], [])
        self.streams: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self.taken = [0, 0]  # frames of each side that stand in its stream
        self.sent = [0, 0]
        self.heard = [0, 0]  # octets of the other's stream that this host has without a hole
        self.beyond: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self.read = [0, 0]  # frames of the other's that this program has read
        self.fin_sent = [False, False]
        self.fin_heard = [False, False]
        self.spoken = [0, 0]  # when each host sent the end of its latest frame
        self.leisure = 45_000_000_000  # of all pauses: who is silent for a minute may be asked what it owes
        self.handshake()

    def tick(self) -> int:
        self.clock += self.random.randrange(1_000, 2_000_000)
        return self.clock

    def handshake(self) -> None:
        for side, flags in ((CLIENT, SYN), (SERVER, SYN | ACK), (CLIENT, ACK)):
            self.segments.append(Segment(side, 0, b"", 0, flags, self.tick(), self.tick()))

    def write(self, side: int) -> bool:
        """A program says something; it stands in its host's buffer."""
        said = self.talk.peers[side].act()
        self.take(side)
        return said

    def take(self, side: int) -> None:
        stream = self.talk.said[side]
        for frame in stream[self.taken[side] :]:
            self.streams[side].extend(frame.octets)
        self.taken[side] = len(stream)

    def unsent(self, side: int) -> int:
        return len(self.streams[side]) - self.sent[side]

    def segment(self, side: int, start: int, octets: bytes, flags: int) -> Segment:
        ack = self.heard[side] + (1 if self.fin_heard[side] else 0)
        segment = Segment(side, start, octets, ack, flags, self.tick())
        self.segments.append(segment)
        self.wire[side].append(segment)
        return segment

    def transmit(self, side: int, size: int) -> None:
        """A host sends the next `size` octets (at most) as one segment."""
        start = self.sent[side]
        octets = bytes(self.streams[side][start : start + min(size, MSS)])
        self.sent[side] += len(octets)
        self.segment(side, start, octets, PSH | ACK)
        if not self.unsent(side):
            self.spoken[side] = self.clock

    def patience(self, side: int) -> int | None:
        """For how long (ns) this peer may be silent yet. None: as long as it likes."""
        allowed = self.talk.peers[side].may_be_silent()
        return None if allowed is None else self.spoken[side] + allowed - self.clock

    def heartbeats(self) -> None:
        """Peers that have been silent for half the time say that they are there, at the latest."""
        for side in (CLIENT, SERVER):
            peer = self.talk.peers[side]
            patience, allowed = self.patience(side), peer.may_be_silent()
            if patience is None or allowed is None or patience > allowed // 2:
                continue
            peer.still_here()
            self.take(side)
            while self.unsent(side):
                self.transmit(side, MSS)

    def pause(self) -> None:
        """Nothing happens for long, as long as nobody owes anything."""
        if any(self.wire) or any(self.lost) or self.unsent(CLIENT) or self.unsent(SERVER):
            return
        if self.talk.restless:
            return
        limits = [patience for side in (CLIENT, SERVER) if (patience := self.patience(side)) is not None]
        longest = min([self.leisure, *(limit * 9 // 10 for limit in limits)])
        if longest > 0:
            pause = self.random.randrange(longest)
            self.leisure -= pause
            self.clock += pause
        self.heartbeats()

    def finish(self, side: int) -> None:
        self.fin_sent[side] = True
        self.segment(side, self.sent[side], b"", FIN | ACK)

    def acknowledge(self, side: int) -> None:
        self.segment(side, self.sent[side] + self.fin_sent[side], b"", ACK)

    def lose(self, side: int) -> None:
        """The next segment under way is lost; its host will send the octets again."""
        segment = self.wire[side].popleft()
        segment.arrived = -1
        segment.lost_at = self.random.random()
        if segment.octets:
            self.lost[side].append(segment)
        elif segment.flags & FIN:
            self.segment(side, segment.start, b"", FIN | ACK)

    def retransmit(self, side: int) -> None:
        """The octets of a lost segment again, in one segment or two."""
        segment = self.lost[side].pop(0)
        cut = len(segment.octets)
        if cut > 1 and self.random.random() < 0.3:
            cut = self.random.randrange(1, cut)
        self.segment(side, segment.start, segment.octets[:cut], PSH | ACK)
        if cut < len(segment.octets):
            self.segment(side, segment.start + cut, segment.octets[cut:], PSH | ACK)

    def deliver(self, side: int) -> None:
        """The next segment of `side` under way reaches the other host."""
        segment = self.wire[side].popleft()
        segment.arrived = self.tick()
        other = 1 - side
        if segment.octets:
            beyond = self.beyond[other]
            beyond.append((segment.start, segment.start + len(segment.octets)))
            beyond.sort()
            while beyond and beyond[0][0] <= self.heard[other]:
                self.heard[other] = max(self.heard[other], beyond.pop(0)[1])
        if segment.flags & FIN and self.heard[other] == segment.start:
            self.fin_heard[other] = True

    def read_next(self, side: int) -> bool:
        """A program reads the next frame that its host has whole."""
        theirs = self.talk.said[1 - side]
        at = self.read[side]
        if at >= len(theirs) or theirs[at].end > self.heard[side]:
            return False
        self.read[side] += 1
        if theirs[at].wrong:
            self.talk.peers[side].hear_wrong(theirs[at])
        else:
            self.talk.peers[side].hear(theirs[at])
        return True

    def settle(self, *, read: bool = True) -> None:
        """Everything said so far is sent, arrives and is read (or not)."""
        busy = True
        while busy:
            busy = False
            for side in (CLIENT, SERVER):
                while self.unsent(side):
                    self.transmit(side, self.random.choice([MSS, MSS, MSS, 7, 100, 600]))
                while self.lost[side]:
                    self.retransmit(side)
                while self.wire[side]:
                    self.deliver(side)
                    busy = True
                while read and self.read_next(side):
                    busy = True

    def goodbye(self) -> None:
        """Hosts of programs that have said their last send FIN."""
        for side in self.random.sample([CLIENT, SERVER], 2):
            if self.talk.peers[side].finished and not self.fin_sent[side]:
                self.finish(side)
                if self.random.random() < 0.7:
                    self.settle()
                    self.acknowledge(1 - side)
        self.settle()
        for side in (CLIENT, SERVER):
            if self.fin_heard[side] and self.random.random() < 0.8:
                self.acknowledge(side)
        self.settle()


def converse(
    seed: str,
    *,
    protocol: str = "amqp10",
    races: bool | None = None,
    lossy: bool | None = None,
    length: int = 0,
    mischief: Callable[[Any], Said | None] | None = None,
    serial: int | None = None,
) -> Conversation:
    """One legal conversation; unless there is `mischief`, which a peer does now and then.

    races: whether peers speak while something is under way to them; else each waits for the other.
    lossy: whether the network loses segments (they are sent again). length: how many things happen.
    serial: with which number all ids and delivery-counts of AMQP 1.0 begin, else that is left to chance;
    nothing else depends on it.
    """
    random = Random(seed)
    talk = _TALKS[protocol](random)
    talk.mischief = mischief
    if isinstance(talk, Talk):
        talk.serial = serial
    network = Network(talk, random)
    racing = random.random() < 0.7 if races is None else races
    losing = (racing and random.random() < 0.3) if lossy is None else lossy
    steps = length or random.choice([30, 100, 200, 300])
    if racing:
        race(network, random, steps, losing)
    else:
        talk.polite = True
        take_turns(network, random, steps)
    if random.random() < 0.6:
        talk.closing = True
        if racing:
            race(network, random, 150, losing)
            network.settle()
        take_turns(network, random, 100)
        network.goodbye()
    elif random.random() < 0.5:
        network.settle()
    return Conversation(talk, network.segments, racing, seed)


def take_turns(network: Network, random: Random, steps: int) -> None:
    """A peer speaks when all that the other one has said was read."""
    network.settle()
    silence = 0
    for _ in range(steps):
        side = random.randrange(2)
        spoke = network.write(side)
        silence = 0 if spoke else silence + 1
        if silence > 20:
            break
        if spoke and random.random() < 0.2:
            # Several frames in one go: its own, so still no race.
            network.write(side)
        network.settle()
        if random.random() < 0.1:
            network.acknowledge(1 - side)
            network.settle()
        if random.random() < 0.05:
            network.pause()
        else:
            network.heartbeats()
        network.settle()


def race(network: Network, random: Random, steps: int, losing: bool) -> None:
    """Programs write and read, hosts send, segments arrive, each when chance will have it."""
    paces = [random.choice([0.3, 1.0, 3.0]) for _ in range(8)]
    happenings = 0
    spoken = 0
    silence = 0
    while spoken < steps and happenings < 8 * steps and silence < 30:
        happenings += 1
        network.heartbeats()
        if random.random() < 0.02:
            network.pause()
        options: list[tuple[float, int, int]] = []
        for side in (CLIENT, SERVER):
            options.append((2.0 * paces[side], 0, side))
            if network.unsent(side):
                options.append((3.0 * paces[2 + side], 1, side))
            if network.wire[side]:
                options.append((4.0 * paces[4 + side], 2, side))
                if losing:
                    options.append((0.3, 6, side))
            if network.read[side] < len(network.talk.said[1 - side]):
                options.append((5.0 * paces[6 + side], 3, side))
            options.append((0.1, 4, side))
            if network.lost[side]:
                options.append((1.0, 5, side))
        point = random.random() * sum(option[0] for option in options)
        kind = side = 0
        for weight, kind, side in options:  # noqa: B007
            point -= weight
            if point < 0:
                break
        silence = silence + 1 if kind == 0 or kind == 4 else 0
        if kind == 0:
            if network.write(side):
                spoken += 1
                silence = 0
        elif kind == 1:
            network.transmit(side, random.choice([MSS, MSS, MSS, MSS, 1, 9, 60, 400]))
        elif kind == 2:
            network.deliver(side)
        elif kind == 3:
            network.read_next(side)
        elif kind == 4:
            network.acknowledge(side)
        elif kind == 5:
            network.retransmit(side)
        else:
            network.lose(side)


@dataclass(frozen=True)
class Tap:
    """Where and how a conversation is captured.

    position   0 at the client, 1 at the server, between: on the way
    delays     ns by which each direction reaches the tap later
    start      segments not captured because the capture began after them
    stop       the capture ends before this segment
    only       one direction alone
    drop, swap, repeat   shares of packets missed, exchanged with the next of their direction, and doubled
    snaplen    octets kept of each packet, 0 for all
    isns       initial sequence numbers of client and server
    """

    position: float = 0.5
    delays: tuple[int, int] = (0, 0)
    start: int = 0
    stop: int | None = None
    only: int | None = None
    drop: float = 0.0
    swap: float = 0.0
    repeat: float = 0.0
    snaplen: int = 0
    isns: tuple[int, int] = (1_000_000, 9_000_000)
    seed: str = ""

    @property
    def whole(self) -> bool:
        """It missed nothing (what it shows twice or late is there)."""
        return self.start == 0 and self.stop is None and self.only is None and not (self.drop or self.snaplen)


@dataclass
class Captured:
    """A capture file. segments: of each packet in it, the number of the conversation's segment."""

    octets: bytes
    segments: list[int] = field(default_factory=list)


def captured(conversation: Conversation, tap: Tap) -> Captured:
    """What the tap wrote down of a conversation, as a pcap file."""
    random = Random(f"{conversation.seed} {tap.seed}")
    seen: list[tuple[int, int]] = []
    for number, segment in enumerate(conversation.segments[tap.start : tap.stop], tap.start):
        if tap.only is not None and segment.side != tap.only:
            continue
        way = tap.position if segment.side == CLIENT else 1 - tap.position
        if segment.arrived < 0 and way >= segment.lost_at:
            continue
        if tap.drop and random.random() < tap.drop:
            continue
        arrived = segment.arrived if segment.arrived > 0 else segment.sent + 1_000_000
        time = segment.sent + int(way * (arrived - segment.sent)) + tap.delays[segment.side]
        seen.append((time, number))
        if tap.repeat and random.random() < tap.repeat:
            seen.append((time + random.randrange(100_000), number))
    seen.sort()
    numbers = [number for _, number in seen]
    for at in range(len(numbers) - 1):
        one, two = conversation.segments[numbers[at]], conversation.segments[numbers[at + 1]]
        if tap.swap and one.side == two.side and random.random() < tap.swap:
            numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]
    capture = Capture(snaplen=tap.snaplen)
    tcp = capture.connection(client_isn=tap.isns[CLIENT], server_isn=tap.isns[SERVER], acks="none")
    ends = (tcp.client, tcp.server)
    for (time, _), number in zip(seen, numbers, strict=True):
        segment = conversation.segments[number]
        capture.clock = time
        ends[segment.side].segment(segment.octets, offset=segment.start, ack=segment.ack, flags=segment.flags)
    return Captured(capture.pcap(nanoseconds=True), numbers)
