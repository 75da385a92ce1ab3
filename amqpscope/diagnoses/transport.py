"""What stands in the way below AMQP, and who is not heard: a network, a full window, a process that hangs.

Theory of operation. TCP acknowledges for a host, AMQP speaks for a process. A peer whose host acknowledges
while the peer says nothing has a process that hangs. A peer that could not write, because the other end's
window was 0 or its octets were not acknowledged, is not late.
"""

from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.declaration import ENDS, MAY_END, Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.diagnoses.speech import Speech
from amqpscope.model.records import PEERS, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.reassembly.stalls import RESENT, WINDOW, Stall
from amqpscope.tracking.clock import ClockStepGuard
from dissectors.wire import i64

__all__ = ["HEARTBEAT_LATE", "NETWORK_STALL", "SILENCE", "TransportWatch"]

_BOTH: Final = ("1.0", "0-9-1")

HEARTBEAT_LATE: Final = declare(
    "heartbeat-late",
    _BOTH,
    """A peer sends nothing for longer than the agreed heartbeat or idle-time-out allows, although its host
    still acknowledges TCP segments.

    What it means: The host and the network work, but the process of the peer hangs and sends no heartbeats.
    Usual causes: A callback blocks the thread that sends heartbeats, garbage collection takes long, or a
    debugger stops the process. The process may also be stopped or lack processor time.
    Who has to act: The silent peer.
    Client: Do long work in a thread that does not serve the connection. Or agree on a longer heartbeat delay.
    Server: Check the load and the garbage collection of the server.
    Not reported when: TCP prevented the peer from writing (closed window), or the capture lacks octets. Also
    not reported when nothing confirms the silence, because the clock of the capturing machine may have been
    set forward. Frames that the other peer sends during the silence confirm it, and so does an AMQP 1.0 close
    with amqp:resource-limit-exceeded.
    Discussions: amqp-node/amqplib#151, Azure/azure-sdk-for-js#37323, CopernicaMarketingSoftware/AMQP-CPP#440
    """,
    Limit("times", 2, "AMQP 0-9-1 lets a peer close the connection after two heartbeats without a frame"),
    Limit("idle-times", 1.5, "an AMQP 1.0 peer should announce half of the time that it really tolerates"),
    explains=(ENDS, MAY_END),
)

SILENCE: Final = declare(
    "silence",
    _BOTH,
    """The peers have not agreed on heartbeats, neither peer sends anything for a long time, and then the
    connection is lost.

    What it means: The service, or a load balancer, NAT device or firewall on the way, ended the idle
    connection. Such a device often drops a connection without informing the peers.
    Usual causes: Heartbeats are switched off. Azure ends idle connections after 240 s, AWS load balancers
    after 350 s, and many services after 300 s.
    Who has to act: Both peers, because both peers must agree on heartbeats.
    Client: Set a heartbeat delay or an idle-time-out that is shorter than the time limit of the service or
    device, for example 30 s.
    Server: Ask for heartbeats by default.
    Not reported when: heartbeats were agreed, or the connection continues.
    Discussions: amqp/rhea#241, Azure/azure-service-bus-java#142
    """,
    Limit("seconds", 60, "services and network devices end idle connections only after some minutes"),
    explains=(ENDS,),
)

NETWORK_STALL: Final = declare(
    "network-stall",
    _BOTH,
    """Octets of one peer do not reach the other peer, because the other peer does not read its socket, or
    because the network connection is interrupted.

    What it means: If the TCP window of a peer is 0, the process of this peer does not read. If octets are
    sent again and never acknowledged, the network is interrupted or the other host is down. A peer that
    cannot write is not at fault for frames that are missing, such as heartbeats.
    Usual causes: A consumer is blocked, stopped or overloaded and does not read its socket. Or a cable is
    cut, a firewall drops the packets, or a host is down.
    Who has to act: The peer that does not read. If TCP does not acknowledge the octets, neither peer has to
    act, because the network or a host has failed.
    Client: Read the socket in a separate thread, and limit the messages in flight by a prefetch or by credit.
    Server: Read the socket in a separate thread, and limit the messages in flight by a prefetch or by credit.
    Not reported when: the window opens in time, or the retransmitted octets are acknowledged.
    Discussions: operand/agency#60, cloudamqp/amqproxy#190
    """,
    Limit("seconds", 5, "even a busy reader opens its window again within a second"),
    Limit(
        "resend-seconds",
        3,
        (
            "TCP sends octets again after 0.2 s and then doubles the interval each time, so four copies "
            "are sent within this time"
        ),
    ),
    explains=(MAY_END,),
)

_KEPT: Final = 128
"""The last packets of each side, among which the first one is looked for that was never acknowledged."""


class _Sent:
    """A packet in which frames of a side begin. end: the offset behind them; of the newest packet, behind the
    first of them until `_Side.reaches`. next: the next such packet, None for none.
    """

    def __init__(self, packet: i64, time: i64, end: i64) -> None:
        self.packet: i64 = packet
        self.time: i64 = time
        self.end: i64 = end
        self.next: _Sent | None = None


class _Side:
    """What one side has to keep to, and its silences. Times in ns."""

    def __init__(self) -> None:
        # How long it may be silent, 0 for any time.
        self.agreed: i64 = 0
        # It has closed the connection: it need not say anything more.
        self.closing: bool = False
        # It has closed the connection as one who waits no longer: its own clock confirms the silence.
        self.given_up: bool = False
        # Its longest silence that is confirmed to be too long: length, the packet before it, its begin, and
        # the packet of its end.
        self.longest: i64 = 0
        self.silent_packet: i64 = 0
        self.silent_since: i64 = 0
        self.silent_end: i64 = 0
        # How many frames it has sent since the last silence of both. Of those that follow another one in
        # the same packet only some are counted.
        self.since_gap: i64 = 0
        # The last packets in which its frames begin, from the oldest to the newest, and how many they are.
        # Most of those that were acknowledged are left out.
        self.oldest: _Sent | None = None
        self.newest: _Sent | None = None
        self.kept: i64 = 0

    def reaches(self, end: i64) -> None:
        """The offset behind its last frame."""
        newest = self.newest
        if newest is not None:
            newest.end = end

    def sends(self, packet: i64, time: i64, end: i64, done: i64) -> None:
        """Its next frame, not behind another one in the same packet. done: the other side has acknowledged
        its octets before this offset.
        """
        self.since_gap += 1
        newest = self.newest
        if newest is None:
            self.oldest = self.newest = _Sent(packet, time, end)
            self.kept = 1
        elif newest.packet == packet and newest.time == time:
            newest.end = end
        else:
            self._keep(packet, time, end, newest, done)

    def _keep(self, packet: i64, time: i64, end: i64, newest: _Sent, done: i64) -> None:
        """Its frames begin in another packet."""
        oldest = self.oldest
        if oldest is not None and oldest is not newest and oldest.end <= done:
            # They are acknowledged. One of two is let go of, and the other is used again. A short list stays
            # in the cache of the processor.
            following = oldest.next
            if following is not None and following is not newest and following.end <= done:
                self.oldest = oldest = following
                self.kept -= 1
        elif self.kept < _KEPT:
            oldest = None
        if oldest is None:
            self.kept += 1
            sent = _Sent(packet, time, end)
        else:
            # The oldest one is used again: an object for each packet would cost more than all else here.
            sent = oldest
            self.oldest = sent.next
            sent.packet = packet
            sent.time = time
            sent.end = end
            sent.next = None
        newest.next = sent
        self.newest = sent

    def beyond(self, offset: i64) -> "_Sent | None":
        """The first of the last packets in which a frame begins that ends behind an offset of the stream."""
        sent = self.oldest
        while sent is not None and sent.end <= offset:
            sent = sent.next
        return sent


class TransportWatch:
    """Watches the silences of one connection."""

    def __init__(self, notebook: Notebook, speech: Speech) -> None:
        self.notebook: Notebook = notebook
        # What understands the frames of its protocol.
        self.speech: Speech = speech
        self.client: _Side = _Side()
        self.server: _Side = _Side()
        # How far the frames confirm a silence.
        self.pace: ClockStepGuard = notebook.pace
        # From when on both keep to what they have agreed.
        self.agreed_time: i64 = 0
        # From when on nothing that both do not say is a silence, in ns.
        self.patience: i64 = max(int(notebook.limit(SILENCE) * SECOND), 1)
        # The last silence of both: its length, and the packet before it.
        self.gap: i64 = 0
        self.gap_packet: i64 = 0
        # The frame behind it closes the connection, with this text.
        self.closed_first: bool = False
        self.close_text: str = ""
        # The peers have opened the connection.
        self.opened: bool = False

    def packet(self, record: FrameRecord, side: i64) -> None:
        """The next frame, if it does not begin and end where the frame before it of the same side does:
        within one packet there is no silence. side: its sender's.
        """
        own = self.client if side == 0 else self.server
        client, server = self.notebook.client, self.notebook.server
        heard = client if side == 0 else server
        frame = record.frame
        time = record.time
        own.reaches(heard.end)
        if record.packet == heard.packet and time == heard.begun and time <= heard.time:
            own.since_gap += 1
            return
        self.pace.saw(time)
        if own.agreed and heard.time:
            since = max(heard.time, self.agreed_time)
            if time - since > own.longest and self._confirmed(side, since, time):
                own.longest = time - since
                own.silent_packet = heard.packet
                own.silent_since = since
                own.silent_end = record.packet
        both = max(client.time, server.time)
        if time - both >= self.patience and both:
            self.gap = time - both
            self.gap_packet = client.packet if client.time >= server.time else server.packet
            self.client.since_gap = 0
            self.server.since_gap = 0
            self.speech.resume(frame.body, self)
        other = server if side == 0 else client
        own.sends(record.packet, time, frame.offset + frame.size, other.acknowledged)

    def agree(self, side: i64, limit: i64, time: i64) -> None:
        """From this time on a side must be heard at least every so often (ns); 0: it need not."""
        self.side(side).agreed = limit
        self.agreed_time = time
        self.notebook.beats = self.notebook.beats or limit > 0

    def side(self, side: i64) -> _Side:
        """What is known of a side."""
        return self.client if side == 0 else self.server

    def _confirmed(self, side: i64, since: i64, until: i64) -> bool:
        """Whether a silence of a side is too long whatever the clock of the capture did."""
        return self.side(1 - side).given_up or self.pace.attested(since, until) > self.side(side).agreed

    def conclude(self, analysis: ConnectionAnalysis) -> None:
        """The connection is over, or the capture is."""
        stalled = [self._stalls(analysis, side) for side in (0, 1)]
        if not self.notebook.lossy:
            for side in (0, 1):
                if not any(stalled):
                    self._late(analysis, side)
            self._silence(analysis)

    def lasting(self, analysis: ConnectionAnalysis) -> None:
        """Diagnose what lasts at the end time of the notebook. Nothing else changes."""
        stalled = [self._stalls(analysis, side, True) for side in (0, 1)]
        if not self.notebook.lossy and not any(stalled):
            for side in (0, 1):
                self._late(analysis, side)

    def _stalls(self, analysis: ConnectionAnalysis, side: int, lasting: bool = False) -> bool:
        """What a side has to say does not get through. lasting: only what lasts still is diagnosed."""
        notebook = self.notebook
        stalls = notebook.connection.stalls[notebook.direction(side)]
        found = False
        for stall in stalls.times:
            until = stall.until if stall.until >= 0 else notebook.end_time
            seconds = (until - stall.since) / SECOND
            if lasting and stall.until >= 0:
                continue
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
            f"the TCP window of the {reader} stays 0 for {duration(seconds)}, so the {reader} does not read "
            f"and the {sender} cannot write",
            {"kind": "zero-window", "window": 0, "cannot_write": sender},
            seconds=seconds,
        )

    def _unheard(self, side: int, stall: Stall, acknowledged: int) -> None:
        packet, since = stall.packet, stall.since
        own = self.side(side)
        own.reaches(self.notebook.heard(side).end)
        first = own.beyond(acknowledged)
        if first is not None and first.time <= stall.since:
            packet, since = first.packet, first.time
        sender = PEERS[side]
        seconds = (self.notebook.end_time - since) / SECOND
        self.notebook.add(
            NETWORK_STALL,
            f"{sender} to {PEERS[1 - side]}",
            "",
            packet,
            f"the {sender} has sent the same octets again for {duration(seconds)} without an "
            f"acknowledgement: the network is interrupted, or the host of the {PEERS[1 - side]} is down",
            {"kind": "unacknowledged-resends", "cannot_write": sender},
            seconds=seconds,
            packets=(stall.packet,),
        )

    def _late(self, analysis: ConnectionAnalysis, side: int) -> None:
        """A side was silent for too long."""
        notebook = self.notebook
        own = self.side(side)
        heard = notebook.heard(side)
        agreed = own.agreed
        if not agreed or not heard.time:
            return
        since = max(heard.time, self.agreed_time)
        silent, packet, begin, ended = own.longest, own.silent_packet, own.silent_since, own.silent_end
        now = notebook.end_time
        if now - since > silent and not own.closing and self._confirmed(side, since, now):
            silent, packet, begin, ended = now - since, heard.packet, since, 0
        agreed_by_both = protocol_of(notebook.connection.protocol).agreed_heartbeat
        name = "times" if agreed_by_both else "idle-times"
        times = notebook.limit(HEARTBEAT_LATE, name)
        least = float(agreed) * times / SECOND
        until = begin + silent
        other = 1 - side
        acknowledged = analysis.tcp.stream(notebook.direction(side)).time
        if (
            not notebook.was_there(side, begin, until, least)
            or not notebook.connection.stalls[int(notebook.direction(other))].free(begin, until) >= silent
            or acknowledged <= begin + silent // 2
        ):
            return
        peer = PEERS[side]
        seconds = silent / SECOND
        notebook.add(
            HEARTBEAT_LATE,
            "connection",
            peer,
            packet,
            f"the {peer} sends nothing for {seconds:.3f} s (agreed limit: {agreed / SECOND:g} s), but its "
            f"host acknowledges TCP: the network works, and the {peer}'s process hangs",
            {"heartbeat": agreed / SECOND, "silent_for": round(seconds, 3)},
            seconds=seconds,
            ended=ended or notebook.end_packet,
        )

    def _reset(self, analysis: ConnectionAnalysis) -> bool:
        """Whether a peer reset the connection."""
        return any(analysis.tcp.stream(direction).end_kind() == "rst" for direction in (0, 1))

    def _silence(self, analysis: ConnectionAnalysis) -> None:
        """Neither side said anything, and that ended the connection."""
        if not self.gap or self.client.agreed or self.server.agreed:
            return
        text = self.close_text.lower()
        if self.closed_first and any(word in text for word in ("inactiv", "idle", "timeout", "time-out")):
            how = "the connection was closed because of the silence"
        elif (self.client.since_gap == 0 or self.server.since_gap == 0) and self._reset(analysis):
            how = "the next frame was answered with a reset"
        else:
            return
        seconds = self.gap / SECOND
        figures: dict[str, Any] = {"heartbeat": 0, "silence": round(seconds, 3), "ended": how}
        self.notebook.add(
            SILENCE,
            "connection",
            "",
            self.gap_packet,
            f"the peers agreed on no heartbeats, and neither peer sent anything for {duration(seconds)}. "
            f"Then {how}, probably because of an idle limit of the service or of a network device between "
            "the peers",
            figures,
            seconds=seconds,
            ended=self.notebook.end_packet,
        )
