"""What stands in the way below AMQP, and who is not heard: a network, a full window, a process that hangs.

Theory of operation. TCP acknowledges for a host, AMQP speaks for a process. A peer whose host acknowledges
while the peer says nothing has a process that hangs. A peer that could not write, because the other end's
window was 0 or its octets were not acknowledged, is not late.
"""

from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.diagnoses.watch import Watch
from amqpscope.model.records import FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.reassembly.stalls import RESENT, WINDOW, Stall
from amqpscope.tracking.amqp10.identity import PEERS
from dissectors.amqp091.methods import ConnectionClose, ConnectionOpenOk, ConnectionTuneOk
from dissectors.amqp10.performatives import Close, Open

__all__ = ["HEARTBEAT_LATE", "NETWORK_STALL", "SILENCE", "TransportWatch"]

_BOTH: Final = ("1.0", "0-9-1")

HEARTBEAT_LATE: Final = declare(
    "heartbeat-late",
    _BOTH,
    """A peer sends nothing for longer than agreed, although its host still acknowledges TCP segments.

    What it means: The host and the network work, but the process of the peer hangs and sends no heartbeats.
    Usual causes: A callback blocks the thread that sends heartbeats, garbage collection takes long, or a
    debugger stops the process. The process may also be stopped or lack processor time.
    Who has to act: The silent peer.
    Client: Do long work in another thread than the thread of the connection. Agree on a longer heartbeat.
    Server: Check the load and the garbage collection of the server.
    Not reported when: TCP kept the peer from writing, or octets are missing.
    Threads: amqp-node/amqplib#151, Azure/azure-sdk-for-js#37323, CopernicaMarketingSoftware/AMQP-CPP#440
    """,
    Limit("times", 2, "AMQP 0-9-1 lets a peer close the connection after two heartbeats without a frame"),
    Limit("idle-times", 1.5, "AMQP 1.0 peers announce half of what they tolerate"),
)

SILENCE: Final = declare(
    "silence",
    _BOTH,
    """Neither peer sends anything for a long time without agreed heartbeats, and then the connection is lost.

    What it means: The service, or a load balancer, NAT device or firewall on the way, ended the idle
    connection. Such a device often forgets a connection without any message.
    Usual causes: Heartbeats are switched off. Azure ends idle connections after 240 s, AWS load balancers
    after 350 s, and many services after 300 s.
    Who has to act: Nobody alone, because both peers can agree on heartbeats.
    Client: Set a heartbeat or an idle-time-out below the limit, for example 30 s.
    Server: Ask for heartbeats by default.
    Not reported when: heartbeats were agreed, or the connection continues.
    Threads: amqp/rhea#241, Azure/azure-service-bus-java#142
    """,
    Limit("seconds", 60, "limits for idle connections are minutes"),
)

NETWORK_STALL: Final = declare(
    "network-stall",
    _BOTH,
    """Octets of one peer do not reach the other peer, because the other peer does not read or the network is
    gone.

    What it means: If the TCP window of the reader is 0, its process does not read. If octets are sent again
    and never acknowledged, the network or the other host is gone. The writer is not at fault for frames that
    it cannot send, including heartbeats.
    Usual causes: A consumer is blocked, stopped or overloaded and does not read its socket. Or a cable, a
    firewall or a host has disappeared.
    Who has to act: The peer that does not read. If octets are not acknowledged, nobody.
    Client: Read the socket in a separate thread, and limit the messages in flight by a prefetch or by credit.
    Server: Read the socket in a separate thread, and limit the messages in flight by a prefetch or by credit.
    Not reported when: the window opens in time, or the octets that were sent again are acknowledged.
    Threads: operand/agency#60, cloudamqp/amqproxy#190
    """,
    Limit("seconds", 5, "a reader that is busy opens its window within a second"),
    Limit("resend-seconds", 3, "TCP resends after 0.2 s, and doubles that each time: four copies"),
)

_KEPT: Final = 64
"""The last frames of each side, among which the first one is looked for that was never acknowledged."""


class TransportWatch(Watch):
    """Watches the silences of one connection."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        # What each side has to keep to (ns), 0 for nothing, from when on.
        self.agreed = [0, 0]
        self.agreed_time = 0
        # Which sides have closed the connection: they need not say anything more.
        self.closing = [False, False]
        # Of each side, its longest silence: length, packet and time of its begin, the packet of its end.
        self.longest = [(0, 0, 0, 0), (0, 0, 0, 0)]
        # The last silence of both: its length, the packet before it, its begin, and the frames after it.
        self.gap = (0, 0, 0)
        self.since_gap = [0, 0]
        self.close_text = ""
        self.closed_first = False
        # The peers have opened the connection, and how many messages came.
        self.opened = False
        self.messages = 0
        # Of each side, the last frames: packet, time, and the offset behind it.
        self.recent: list[list[tuple[int, int, int]]] = [[], []]

    def take(self, record: FrameRecord, side: int) -> None:
        notebook = self.notebook
        last = notebook.frame_time[side]
        if isinstance(record.frame.body, (Close, ConnectionClose)):
            self.closing[side] = True
        if last:
            since = max(last, self.agreed_time)
            if self.agreed[side] and record.time - since > self.longest[side][0]:
                self.longest[side] = (record.time - since, notebook.frame_packet[side], since, record.packet)
        both = max(notebook.frame_time)
        body = record.frame.body
        if both and record.time - both >= int(notebook.limit(SILENCE) * SECOND):
            newest = 0 if notebook.frame_time[0] >= notebook.frame_time[1] else 1
            self.gap = (record.time - both, notebook.frame_packet[newest], both)
            self.since_gap = [0, 0]
            self.closed_first = isinstance(body, (Close, ConnectionClose))
            if isinstance(body, Close) and body.error is not None:
                self.close_text = f"{body.error.condition} {body.error.description}"
            elif isinstance(body, ConnectionClose):
                self.close_text = body.reply_text or ""
        self.since_gap[side] += 1
        if record.message is not None:
            self.messages += 1
        if isinstance(body, (Open, ConnectionOpenOk)) and side == 1:
            self.opened = True
        if isinstance(body, Open) and body.idle_time_out:
            self.agreed[1 - side] = body.idle_time_out * 1_000_000
            self.agreed_time = record.time
        elif isinstance(body, ConnectionTuneOk):
            self.agreed = [body.heartbeat * SECOND] * 2
            self.agreed_time = record.time
        recent = self.recent[side]
        recent.append((record.packet, record.time, record.frame.offset + record.frame.size))
        if len(recent) > 2 * _KEPT:
            del recent[:_KEPT]

    def conclude(self, analysis: ConnectionAnalysis) -> None:
        """The connection is over, or the capture is."""
        stalled = [self._stalls(analysis, side) for side in (0, 1)]
        if not self.notebook.lossy:
            for side in (0, 1):
                if not any(stalled):
                    self._late(analysis, side)
            self._silence(analysis)

    def _stalls(self, analysis: ConnectionAnalysis, side: int) -> bool:
        """What a side has to say does not get through."""
        notebook = self.notebook
        stalls = notebook.connection.stalls[notebook.direction(side)]
        found = False
        for stall in stalls.times:
            until = stall.until if stall.until >= 0 else notebook.end_time
            seconds = (until - stall.since) / SECOND
            if stall.cause == WINDOW and seconds >= notebook.limit(NETWORK_STALL):
                self._shut(side, stall, seconds)
                found = True
            elif stall.cause == RESENT and seconds >= notebook.limit(NETWORK_STALL, "resend-seconds"):
                if stall.until < 0 or stall.until >= notebook.end_time:
                    self._unheard(side, stall, stalls.acknowledged)
                found = True
        return found

    def _shut(self, side: int, stall: Stall, seconds: float) -> None:
        sender, reader = PEERS[side], PEERS[1 - side]
        self.notebook.add(
            NETWORK_STALL,
            f"{sender} to {reader}",
            reader,
            stall.packet,
            f"the TCP window of the {reader} is 0 for {duration(seconds)}, so the {reader} does not "
            "read and the "
            f"{sender} cannot write",
            {"kind": "zero-window", "window": 0, "cannot_write": sender},
            seconds=seconds,
        )

    def _unheard(self, side: int, stall: Stall, acknowledged: int) -> None:
        packet, since = stall.packet, stall.since
        for one, time, end in self.recent[side]:
            if end > acknowledged:
                if time <= stall.since:
                    packet, since = one, time
                break
        sender = PEERS[side]
        seconds = (self.notebook.end_time - since) / SECOND
        self.notebook.add(
            NETWORK_STALL,
            f"{sender} to {PEERS[1 - side]}",
            "",
            packet,
            f"the {sender} has sent the same octets again for {duration(seconds)} without an "
            "acknowledgement: the "
            f"network or the host of the {PEERS[1 - side]} is gone",
            {"kind": "unacknowledged-resends", "cannot_write": sender},
            seconds=seconds,
            packets=(stall.packet,),
        )

    def _late(self, analysis: ConnectionAnalysis, side: int) -> None:
        """A side was silent for too long."""
        notebook = self.notebook
        agreed = self.agreed[side]
        if not agreed or not notebook.frame_time[side]:
            return
        since = max(notebook.frame_time[side], self.agreed_time)
        silent, packet, begin, ended = self.longest[side]
        if notebook.end_time - since > silent and not self.closing[side]:
            silent, packet, begin, ended = notebook.end_time - since, notebook.frame_packet[side], since, 0
        agreed_by_both = protocol_of(notebook.connection.protocol).agreed_heartbeat
        name = "times" if agreed_by_both else "idle-times"
        times = notebook.limit(HEARTBEAT_LATE, name)
        least = agreed * times / SECOND
        until = begin + silent
        other = 1 - side
        acknowledged = analysis.tcp.facts(notebook.direction(side)).last_time
        if (
            not notebook.idle(side, begin, until, least)
            or not notebook.connection.stalls[notebook.direction(other)].free(begin, until) >= silent
            or acknowledged <= begin + silent // 2
            or notebook.frame_time[other] <= begin
        ):
            return
        peer = PEERS[side]
        seconds = silent / SECOND
        notebook.add(
            HEARTBEAT_LATE,
            "connection",
            peer,
            packet,
            f"the {peer} sends nothing for {duration(seconds)}, although {agreed / SECOND:g} s are "
            "agreed; its host "
            "still acknowledges, so its process hangs and the network works",
            {"heartbeat": agreed / SECOND, "silent_for": round(seconds, 3)},
            seconds=seconds,
            ended=ended or notebook.end_packet,
        )

    def _silence(self, analysis: ConnectionAnalysis) -> None:
        """Neither side said anything, and that ended the connection."""
        length, packet, _ = self.gap
        if not length or any(self.agreed):
            return
        ends = [analysis.tcp.facts(self.notebook.direction(side)).ended for side in (0, 1)]
        text = self.close_text.lower()
        if self.closed_first and any(word in text for word in ("inactiv", "idle", "timeout", "time-out")):
            how = "the connection was closed for it"
        elif "rst" in ends and (self.since_gap[0] == 0 or self.since_gap[1] == 0):
            how = "the next frame was answered with a reset"
        else:
            return
        seconds = length / SECOND
        figures: dict[str, Any] = {"heartbeat": 0, "silence": round(seconds, 3), "ended": how}
        self.notebook.add(
            SILENCE,
            "connection",
            "",
            packet,
            f"neither peer sent anything for {duration(seconds)} without agreed heartbeats, and then {how}, "
            "probably because of an idle limit of the service or of a device on the way",
            figures,
            seconds=seconds,
            ended=self.notebook.end_packet,
        )
