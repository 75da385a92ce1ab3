"""One fault in an otherwise legal conversation, where no doubt is possible.

The peers take turns, so that each knows all that the other one has said, and proves it where the rule needs
that. A fault is a function: given a peer, it says something illegal and gives back the rule that this breaks
and the frame that breaks it; or says nothing, and gives None, where there is no occasion for it.

What makes a fault certain is written beside it: the peer was granted less at no time (credit, windows), has
answered what the fault rests on, or the fault is one whatever the other peer did.
"""

from __future__ import annotations

from random import Random
from typing import Any

from support import amqp10_encode as amqp
from support.legal import (
    CLIENT,
    OUTCOMES,
    RECEIVER,
    SENDER,
    SERVER,
    WRAP,
    Fields,
    Incoming,
    Link,
    Peer,
    Said,
    Session,
    Talk,
)
from support.network import Network
from support.planting import Fault, Planted, Registry, planted_in

__all__ = ["FAULTS", "Planted", "mischief", "plant"]

_REGISTRY = Registry()

FAULTS = _REGISTRY.faults
breaks = _REGISTRY.breaks
mischief = _REGISTRY.mischief

# Faults of those who take up a link again with deliveries unsettled: few do.
LEFT_LINKS = (
    "D-RESUME-FLAG",
    "D-RESUME-OMIT",
    "M-RES-RESEND-NEW",
    "M-RES-TERMRCV-STATE",
    "M-RES-START",
)


def plant(
    name: str, seed: str, spoken: type[Talk] = Talk, faults: dict[str, tuple[str, Fault]] | None = None
) -> Planted | None:
    """A conversation with this fault in it, or None if there was no occasion.

    spoken: the dialect; faults: those of the dialect.
    """
    rule, fault = (faults or FAULTS)[name]
    random = Random(f"{name} {seed}")
    talk = spoken(random, sasl=True if rule.startswith(("SA-", "F-TYPE-PHASE")) else None)
    talk.polite = True
    for peer in talk.peers:
        # Long lives: occasions come.
        peer.character.closes = 0.0
        peer.character.ends = min(peer.character.ends, 0.05)
        peer.character.begins = max(peer.character.begins, 1)
        if rule.startswith("TX-") or rule in LEFT_LINKS:
            peer.character.transacts = rule.startswith("TX-")
            peer.character.settle_down(suspends=rule in LEFT_LINKS)
            peer.character.begins = 1
    seed = f"{name} {seed}"
    return planted_in(talk, random, rule, fault, seed, lambda peer: not peer.open_sent, aftermath)


def aftermath(network: Network, peer: Peer) -> None:
    """What a correct peer does then: it closes; the other one answers. Or the capture ends here."""
    other = network.talk.peers[1 - peer.side]
    if other.open_sent and not other.close_sent and peer.random.random() < 0.6:
        other.say("close", error="amqp:connection:framing-error")
        network.take(other.side)
        network.settle(read=False)
        if peer.open_sent and not peer.close_sent:
            peer.say("close")
            network.take(peer.side)
            network.settle(read=False)


# ---- occasions --------------------------------------------------------------------------------------------


def working(peer: Peer) -> bool:
    """Both opens are exchanged, neither peer has closed."""
    return peer.open_sent and peer.peer_open is not None and not peer.close_sent and not peer.close_heard


def sessions(peer: Peer) -> list[Session]:
    """Sessions in full use, in any order."""
    if not working(peer):
        return []
    usable = [s for s in peer.sessions if s.usable and s.begin_heard and not s.end_heard]
    return peer.random.sample(usable, len(usable))


def links(peer: Peer) -> list[tuple[Session, Link]]:
    """Attached links, in any order."""
    return [(s, link) for s in sessions(peer) for link in s.links.values() if link.up and link.live]


def senders(peer: Peer) -> list[tuple[Session, Link]]:
    """Links on which this peer sends and could, window and termini allowing, send a transfer."""
    return [
        (s, link)
        for s, link in links(peer)
        if link.sender
        and link.attaches == 1
        and not link.broken
        and link.mine["source"] is not None
        and link.theirs["target"] is not None
    ]


def open_window(session: Session) -> bool:
    return session.bound is not None and session.next_out < session.bound


def ready(peer: Peer) -> list[tuple[Session, Link]]:
    """Links on which a new delivery could be sent just now."""
    return [
        (s, link)
        for s, link in senders(peer)
        if open_window(s) and link.open is None and link.limit is not None and link.count < link.limit
        if link.acquires is None
    ]


def delivery(peer: Peer, session: Session, link: Link, payload: bytes | None = None, **changed: Any) -> Said:
    """A legal delivery in one transfer, but for what is changed."""
    assert session.out is not None
    fields: Fields = {
        "handle": link.handle,
        "delivery_id": peer.next_number(session),
        "delivery_tag": b"planted",
        "message_format": 0,
        "settled": True if link.mine.get("snd_settle_mode") == 1 else None,
    }
    fields.update(changed)
    session.next_delivery += 1
    session.next_out += 1
    link.count += 1
    if payload is None:
        payload = amqp.amqp_value(amqp.declare()) if link.coordinator else amqp.data(b"x")
    return peer.say("transfer", session.out, payload, **fields)


def flow(peer: Peer, session: Session, **changed: Any) -> Said:
    """A legal flow of the session, but for what is changed."""
    assert session.out is not None
    return peer.say("flow", session.out, **{**peer.flow_fields(session), **changed})


def proves(peer: Peer, link: Link) -> bool:
    """Say something that shows that the peer has read the other end's attach of this link: a flow whose
    next-incoming-id counts a transfer that came after it."""
    theirs = peer.talk.said[1 - peer.side]
    attached = [s.end for s in theirs if s.name == "attach" and s.fields is link.theirs]
    for session in sessions(peer):
        if any(s.name == "transfer" and s.channel == session.into and s.start >= attached[0] for s in theirs):
            flow(peer, session)
            return True
    return False


def octets(peer: Peer, name: str, raw: bytes) -> Said:
    """Octets that are no frame of `Said`'s."""
    return peer.put(Said(peer.side, name, 0, {}, b"", raw, 0, 0))


def begin_fields(peer: Peer, **changed: Any) -> Fields:
    fields: Fields = {"next_outgoing_id": peer.talk.serial or 0, "incoming_window": 10, "outgoing_window": 10}
    return {**fields, **changed}


def attach_fields(peer: Peer, handle: int, role: bool, **changed: Any) -> Fields:
    fields: Fields = {
        "name": "planted",
        "handle": handle,
        "role": role,
        "source": peer.amqp.source(address="a"),
        "target": peer.amqp.target(address="b"),
        "initial_delivery_count": (peer.talk.serial or 0) if role is SENDER else None,
    }
    return {**fields, **changed}


def begun_channels(peer: Peer) -> set[int]:
    return {said.channel for said in peer.talk.said[peer.side] if said.name == "begin"}


# ---- credit and windows: certain where no grant was ever larger -------------------------------------------


@breaks("L-CREDIT")
def credit_exceeded(peer: Peer) -> Said | None:
    for session, link in senders(peer):
        if link.aborted:
            continue  # whether that one counted is the sender's to say
        if open_window(session) and link.open is None and link.limit is not None and link.grants:
            if link.count >= link.limit == link.largest:
                return delivery(peer, session, link)
    return None


@breaks("L-CREDIT-INIT")
def credit_never_given(peer: Peer) -> Said | None:
    for session, link in senders(peer):
        if open_window(session) and link.grants == 0 and link.open is None:
            return delivery(peer, session, link)
    return None


@breaks("S-WIN-IN")
def window_exceeded(peer: Peer) -> Said | None:
    for session, link in senders(peer):
        if link.open is None and link.limit is not None and link.count < link.limit:
            if session.bound is not None and session.next_out >= session.bound == session.largest_bound:
                return delivery(peer, session, link)
    return None


# ---- channels and handles ---------------------------------------------------------------------------------


@breaks("L-UNATTACHED-TRANSFER")
def transfer_on_unattached_handle(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, handle=next(h for h in range(99) if h not in session.handles))
    return None


@breaks("L-UNATTACHED-FLOW")
def flow_on_unattached_handle(peer: Peer) -> Said | None:
    for session in sessions(peer):
        free = next(h for h in range(99) if h not in session.handles)
        return flow(peer, session, handle=free, link_credit=1)
    return None


@breaks("L-UNATTACHED-DETACH")
def detach_on_unattached_handle(peer: Peer) -> Said | None:
    for session in sessions(peer):
        assert session.out is not None
        return peer.say("detach", session.out, handle=next(h for h in range(99) if h not in session.handles))
    return None


@breaks("L-HANDLE-INUSE")
def handle_in_use(peer: Peer) -> Said | None:
    for session, link in links(peer):
        assert session.out is not None and link.handle is not None
        return peer.say("attach", session.out, **attach_fields(peer, link.handle, peer.chance(0.5)))
    return None


@breaks("S-HANDLEMAX")
def handle_above_max(peer: Peer) -> Said | None:
    for session in sessions(peer):
        if session.peer_handle_max < WRAP:
            assert session.out is not None
            return peer.say(
                "attach", session.out, **attach_fields(peer, session.peer_handle_max + 1, RECEIVER)
            )
    return None


@breaks("S-BEGIN-REUSE")
def begin_on_used_channel(peer: Peer) -> Said | None:
    for session in sessions(peer):
        assert session.out is not None
        return peer.say("begin", session.out, **begin_fields(peer))
    return None


@breaks("S-BEGIN-FIRST")
def flow_on_channel_never_begun(peer: Peer) -> Said | None:
    if not working(peer) or peer.peer_open is None:
        return None
    limit = 65535 if peer.peer_open["channel_max"] is None else peer.peer_open["channel_max"]
    for channel in range(min(limit, 9) + 1):
        if channel not in begun_channels(peer):
            name = peer.random.choice(["flow", "end"])
            fields: Fields = {"incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 1}
            return peer.say(name, channel, **(fields if name == "flow" else {}))
    return None


@breaks("S-END-LAST")
def flow_after_end(peer: Peer) -> Said | None:
    if working(peer):
        for channel in begun_channels(peer):
            if channel not in peer.outgoing:
                return peer.say("flow", channel, incoming_window=1, next_outgoing_id=0, outgoing_window=1)
    return None


@breaks("S-BEGIN-REMOTEVALID")
def begin_answers_no_begin(peer: Peer) -> Said | None:
    free = peer.free_channel() if working(peer) else None
    heard = {said.channel for said in peer.talk.said[1 - peer.side] if said.name == "begin"}
    if free is None:
        return None
    never = next(channel for channel in range(99) if channel not in heard)
    return peer.say("begin", free, **begin_fields(peer, remote_channel=never))


@breaks("C-CHMAX")
def channel_above_max(peer: Peer) -> Said | None:
    if not working(peer) or peer.peer_open is None:
        return None
    limit = peer.peer_open["channel_max"]
    return None if limit in (None, 65535) else peer.say("begin", limit + 1, **begin_fields(peer))


# ---- connection -------------------------------------------------------------------------------------------


@breaks("C-HDR-FIRST")
def open_without_header(peer: Peer) -> Said | None:
    if peer.sasl_done and not peer.header_sent and not peer.talk.sasl:
        return peer.say("open", container_id="x")
    return None


@breaks("C-OPEN-FIRST")
def begin_before_open(peer: Peer) -> Said | None:
    if peer.header_sent and not peer.open_sent:
        return peer.say("begin", **begin_fields(peer))
    return None


@breaks("C-EMPTY-AFTEROPEN")
def empty_before_open(peer: Peer) -> Said | None:
    return peer.say("empty") if peer.header_sent and not peer.open_sent else None


@breaks("C-CLOSE-AFTEROPEN")
def close_before_open(peer: Peer) -> Said | None:
    if peer.header_sent and not peer.open_sent:
        peer.failed = True
        return peer.say("close")
    return None


@breaks("C-OPEN-CH0")
def open_on_channel_1(peer: Peer) -> Said | None:
    if peer.header_sent and not peer.open_sent and peer.peer_open is not None:
        if peer.peer_open["channel_max"] != 0:
            peer.open_sent = True
            return peer.say("open", 1, container_id="x")
    return None


@breaks("C-OPEN-ONCE")
def open_again(peer: Peer) -> Said | None:
    return peer.say("open", container_id="x") if working(peer) else None


@breaks("C-MAXFRAME-FLOOR")
def open_with_small_frames(peer: Peer) -> Said | None:
    if peer.header_sent and not peer.open_sent:
        peer.open_sent = True
        return peer.say("open", container_id="x", max_frame_size=peer.random.randrange(512))
    return None


@breaks("C-OPEN-SIZE")
def large_open_before_the_other(peer: Peer) -> Said | None:
    if peer.header_sent and not peer.open_sent and peer.peer_open is None:
        peer.open_sent = True
        return peer.say("open", container_id="x" * (peer.least_frame_size + 90))
    return None


@breaks("C-PIPE-SIZE")
def large_frame_before_open(peer: Peer) -> Said | None:
    if peer.open_sent and peer.peer_open is None and not peer.close_sent and 0 not in peer.outgoing:
        return peer.say(
            "begin", **begin_fields(peer, properties={"p": amqp.string("x" * (peer.least_frame_size + 90))})
        )
    return None


@breaks("C-PIPE-CHANNEL")
def channel_1_before_open(peer: Peer) -> Said | None:
    if peer.open_sent and peer.peer_open is None and not peer.close_sent:
        return peer.say("begin", 1, **begin_fields(peer))
    return None


@breaks("C-MAXFRAME")
def oversized_frame(peer: Peer) -> Said | None:
    if peer.peer_open is None or not peer.peer_open["max_frame_size"]:
        return None
    for session, link in ready(peer):
        if link.theirs["max_message_size"] in (None, 0):
            payload = amqp.data(b"x" * peer.peer_open["max_frame_size"])
            return delivery(peer, session, link, payload)
    return None


@breaks("C-CLOSE-LAST")
def frame_after_close(peer: Peer) -> Said | None:
    if working(peer) and peer.chance(0.05):
        peer.close_sent = True
        peer.say("close")
        return peer.say(peer.random.choice(["empty", "close"]))
    return None


@breaks("C-EMPTY-CH0")
def empty_frame_on_channel_1(peer: Peer) -> Said | None:
    if working(peer) and peer.peer_open is not None and peer.peer_open["channel_max"] != 0:
        return peer.say("empty", 1)
    return None


@breaks("C-CLOSE-CH0")
def close_on_channel_1(peer: Peer) -> Said | None:
    if working(peer) and peer.peer_open is not None and peer.peer_open["channel_max"] != 0:
        peer.close_sent = True
        return peer.say("close", 1)
    return None


@breaks("C-REDIRECT-INFO")
def redirected_to_nowhere(peer: Peer) -> Said | None:
    if working(peer) and peer.chance(0.05):
        peer.close_sent = True
        return peer.say("close", error="amqp:connection:redirect")
    return None


# ---- session flow state -----------------------------------------------------------------------------------


@breaks("S-FLOW-NEXTOUT")
def wrong_next_outgoing_id(peer: Peer) -> Said | None:
    for session in sessions(peer):
        wrong = session.next_out + peer.random.choice([1, 2, -1, 1000])
        return flow(peer, session, next_outgoing_id=wrong & WRAP)
    return None


@breaks("S-FLOW-NEXTIN-VALUE")
def next_incoming_id_never_sent(peer: Peer) -> Said | None:
    for session in sessions(peer):
        return flow(peer, session, next_incoming_id=(session.next_in + peer.random.choice([1, 7])) & WRAP)
    return None


@breaks("S-FLOW-NEXTIN-SET")
def no_next_incoming_id(peer: Peer) -> Said | None:
    for session in sessions(peer):
        if session.answering:
            return flow(peer, session, next_incoming_id=None)
    return None


@breaks("S-FLOW-NEXTIN-UNSET")
def next_incoming_id_too_soon(peer: Peer) -> Said | None:
    for session in peer.sessions:
        if session.begin_sent and not session.begin_heard and not peer.close_sent and not session.end_sent:
            return flow(peer, session, next_incoming_id=peer.talk.serial or 0)
    return None


@breaks("S-FLOW-NOHANDLE-DC")
def session_flow_with_delivery_count(peer: Peer) -> Said | None:
    for session in sessions(peer):
        return flow(peer, session, delivery_count=1)
    return None


@breaks("S-FLOW-NOHANDLE-CREDIT")
def session_flow_with_link_credit(peer: Peer) -> Said | None:
    for session in sessions(peer):
        return flow(peer, session, link_credit=1)
    return None


@breaks("S-FLOW-NOHANDLE-AVAIL")
def session_flow_with_available(peer: Peer) -> Said | None:
    for session in sessions(peer):
        return flow(peer, session, available=1)
    return None


@breaks("S-FLOW-NOHANDLE-DRAIN")
def session_flow_with_drain(peer: Peer) -> Said | None:
    for session in sessions(peer):
        return flow(peer, session, drain=True)
    return None


# ---- links ------------------------------------------------------------------------------------------------


@breaks("L-ATTACH-IDC")
def attach_without_initial_delivery_count(peer: Peer) -> Said | None:
    for session in sessions(peer):
        handle = peer.free_handle(session)
        if handle is not None and session.out is not None:
            fields = attach_fields(peer, handle, SENDER, initial_delivery_count=None)
            return peer.say("attach", session.out, **fields)
    return None


@breaks("L-DC-UNSET")
def delivery_count_too_soon(peer: Peer) -> Said | None:
    for session in sessions(peer):
        for link in session.links.values():
            if not link.sender and link.handle is not None and link.attaches == 1 and not link.peer_attaches:
                return flow(
                    peer, session, handle=link.handle, delivery_count=peer.talk.serial or 0, link_credit=1
                )
    return None


@breaks("L-DC-RECEIVER")
def delivery_count_never_reached(peer: Peer) -> Said | None:
    for session, link in links(peer):
        if not link.sender and link.known is not None and link.attaches == 1 and not link.vague:
            ahead = (link.known + peer.random.choice([1, 50])) & WRAP
            return flow(peer, session, handle=link.handle, delivery_count=ahead, link_credit=1)
    return None


@breaks("L-MAXMSG")
def message_too_large(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        size = link.theirs["max_message_size"]
        large = size == peer.largest_message and peer.frame_limit > peer.largest_message + 500
        if large and not link.coordinator and proves(peer, link):
            return delivery(peer, session, link, amqp.data(b"x" * (peer.largest_message + 100)))
    return None


# ---- deliveries -------------------------------------------------------------------------------------------


@breaks("D-TAG-UNIQUE")
def tag_in_use(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        for each in session.sent.values():
            if each.link is link and not each.remote_settled:
                return delivery(peer, session, link, delivery_tag=each.tag)
    return None


@breaks("D-TAG-LEN")
def tag_too_long(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, delivery_tag=b"t" * 33)
    return None


@breaks("D-ID-UNIQUE")
def delivery_id_in_use(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        for each in session.sent.values():
            if not each.remote_settled:
                return delivery(peer, session, link, delivery_id=each.number)
    return None


@breaks("D-ID-SEQ")
def delivery_id_backwards(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        begun = [s for s in peer.talk.said[peer.side] if s.name == "transfer" and s.channel == session.out]
        busy = {each.open.number for each in session.links.values() if each.open is not None}
        number = (session.next_delivery - 1) & WRAP
        if any(s.fields.get("delivery_id") == number for s in begun) and number not in session.sent:
            if number not in busy:
                return delivery(peer, session, link, delivery_id=number)
    return None


@breaks("D-ID-PRESENT")
def no_delivery_id(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, delivery_id=None)
    return None


@breaks("D-TAG-PRESENT")
def no_delivery_tag(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, delivery_tag=None)
    return None


def continuation(peer: Peer, **changed: Any) -> Said | None:
    """The next transfer of a delivery under way, changed."""
    for session, link in senders(peer):
        if link.open is not None and open_window(session) and session.out is not None:
            rest = link.open.message[link.open.position :]
            settled = True if link.mine["snd_settle_mode"] == 1 else None
            # As it would be but for the change: the message is not finished, so that it stays unjudged.
            fields: Fields = {"handle": link.handle, "more": True, "settled": settled, **changed}
            if link.open.txn is not None:
                fields["state"] = ("transactional", link.open.txn, None)
            room = peer.frame_limit - len(peer.encoded("transfer", session.out, fields))
            return peer.say("transfer", session.out, rest[:room], **fields)
    return None


@breaks("D-ID-CONT")
def continuation_changes_id(peer: Peer) -> Said | None:
    for _, link in senders(peer)[:1]:
        if link.open is not None:
            return continuation(peer, delivery_id=(link.open.number + 77) & WRAP)
    return None


@breaks("D-TAG-CONT")
def continuation_changes_tag(peer: Peer) -> Said | None:
    return continuation(peer, delivery_tag=b"another")


@breaks("D-FMT-CONT")
def continuation_changes_format(peer: Peer) -> Said | None:
    return continuation(peer, message_format=5)


@breaks("D-SNDMODE-UNSETTLED")
def settled_on_unsettled_link(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        if link.mine["snd_settle_mode"] == 0:
            return delivery(peer, session, link, settled=True)
    return None


@breaks("D-SNDMODE-SETTLED")
def unsettled_on_settled_link(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        if link.mine["snd_settle_mode"] == 1:
            return delivery(peer, session, link, settled=None)
    return None


@breaks("D-RCVMODE-RAISE")
def receiver_settle_mode_raised(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        if link.theirs["rcv_settle_mode"] or link.mine["snd_settle_mode"] == 1:
            continue
        if proves(peer, link):
            return delivery(peer, session, link, rcv_settle_mode=1)
    return None


@breaks("D-DISP-RANGE")
def disposition_backwards(peer: Peer) -> Said | None:
    for session in sessions(peer):
        for each in session.received.values():
            if peer.answerable(each) and session.out is not None:
                last = (each.number - 1) & WRAP
                return peer.say("disposition", session.out, role=RECEIVER, first=each.number, last=last)
    return None


@breaks("D-DISP-UNKNOWN")
def disposition_of_unknown(peer: Peer) -> Said | None:
    for session in sessions(peer):
        if session.received and session.out is not None:
            number = (list(session.received)[-1] + 5) & WRAP
            fields: Fields = {"role": RECEIVER, "first": number, "settled": True, "state": "accepted"}
            return peer.say("disposition", session.out, **fields)
    return None


@breaks("D-DISP-ROLE")
def disposition_with_the_other_role(peer: Peer) -> Said | None:
    for session in sessions(peer):
        known = [each for each in session.sent.values() if each.link.live]
        if known and not session.received and session.next_in == heard_initial(peer, session):
            assert session.out is not None
            fields: Fields = {
                "role": RECEIVER,
                "first": known[0].number,
                "settled": True,
                "state": "accepted",
            }
            return peer.say("disposition", session.out, **fields)
    return None


def heard_initial(peer: Peer, session: Session) -> int:
    """The other peer's first transfer-id of a session."""
    begins = [s for s in peer.talk.said[1 - peer.side] if s.name == "begin" and s.channel == session.into]
    number: int = begins[-1].fields["next_outgoing_id"]
    return number


@breaks("D-ABORT-MORE")
def aborted_with_more(peer: Peer) -> Said | None:
    return continuation(peer, aborted=True)


@breaks("D-FMT-PRESENT")
def no_message_format(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, message_format=None, more=True)
    return None


@breaks("M-RECEIVED-SND")
def sender_states_received(peer: Peer) -> Said | None:
    for session in sessions(peer):
        for each in session.sent.values():
            if each.link.live and not each.remote_settled:
                return reported(peer, session, SENDER, each.number, state="received")
    return None


@breaks("D-STATE-FINAL-SND")
def sender_changes_its_mind(peer: Peer) -> Said | None:
    for session in sessions(peer):
        for each in session.sent.values():
            if each.link.live and not each.remote_settled and each.txn is None:
                reported(peer, session, SENDER, each.number, state="accepted")
                return reported(peer, session, SENDER, each.number, state="released")
    return None


def reported(peer: Peer, session: Session, role: bool, first: int, **fields: Any) -> Said:
    """A disposition of one delivery."""
    assert session.out is not None
    return peer.say(
        "disposition", session.out, **{"role": role, "first": first, "last": None, "settled": None, **fields}
    )


def received(peer: Peer) -> list[tuple[Session, Incoming]]:
    """Deliveries received whole on links attached once, settled by nobody."""
    return [
        (session, each)
        for session in sessions(peer)
        for each in session.received.values()
        if each.complete and not (each.aborted or each.settled or each.sent_settled or each.remote_settled)
        if each.link.up and each.link.live and each.link.attaches == 1
        if each.txn is None and each.control is None
    ]


def outcomes(each: Incoming) -> tuple[str, ...]:
    offered: tuple[str, ...] = each.link.theirs["source"].outcomes
    return offered


@breaks("D-RCVMODE-SECOND")
def settled_before_the_sender(peer: Peer) -> Said | None:
    for session, each in received(peer):
        if each.second:
            return reported(peer, session, RECEIVER, each.number, settled=True)
    return None


@breaks("D-STATE-FINAL-RCV")
def receiver_changes_its_mind(peer: Peer) -> Said | None:
    for session, each in received(peer):
        others = [state for state in outcomes(each) or OUTCOMES if state != each.state]
        if each.state in OUTCOMES and others:
            return reported(peer, session, RECEIVER, each.number, state=peer.random.choice(others))
    return None


@breaks("M-OUTCOMES-USE")
def outcome_not_offered(peer: Peer) -> Said | None:
    for session, each in received(peer):
        others = [state for state in OUTCOMES if state not in outcomes(each)]
        if outcomes(each) and others and each.state not in OUTCOMES:
            settled = None if each.second else True
            return reported(peer, session, RECEIVER, each.number, settled=settled, state=others[0])
    return None


@breaks("D-DISP-RESETTLE")
def settled_twice(peer: Peer) -> Said | None:
    for session in sessions(peer):
        for each in session.received.values():
            if each.settled and each.link.live and each.state in OUTCOMES:
                return reported(peer, session, RECEIVER, each.number, settled=True, state=each.state)
    return None


@breaks("D-RESUME-LOCAL")
def resumed_without_being_unsettled(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, resume=True)
    return None


@breaks("D-RESUME-FIRSTFRAME")
def continuation_resumes(peer: Peer) -> Said | None:
    return continuation(peer, resume=True)


@breaks("D-RESUME-FLAG")
def resumed_without_resume(peer: Peer) -> Said | None:
    for session, link in links(peer):
        if link.tangled:
            continue  # which flow belongs to which attachment cannot be determined
        if link.sender and link.limit is not None and link.count < link.limit and link.open is None:
            both = [tag for tag in link.held if tag in (link.theirs["unsettled"] or {})]
            if both and open_window(session) and link.theirs["target"] and link.mine["source"]:
                return delivery(peer, session, link, delivery_tag=both[0])
    return None


# ---- flow state of links ----------------------------------------------------------------------------------


def quiet_senders(peer: Peer) -> list[tuple[Session, Link]]:
    """Links attached once, on which this peer sends, between two deliveries."""
    return [(s, link) for s, link in senders(peer) if link.open is None and not link.uncounted]


@breaks("L-DC-SENDER")
def wrong_delivery_count(peer: Peer) -> Said | None:
    for session, link in quiet_senders(peer):
        wrong = (link.count + peer.random.choice([-1, -3, 5000])) & WRAP
        return flow(peer, session, handle=link.handle, delivery_count=wrong, link_credit=0)
    return None


@breaks("L-CREDIT-OWNER")
def sender_gives_itself_credit(peer: Peer) -> Said | None:
    for session, link in quiet_senders(peer):
        if link.grants == 0:
            return flow(peer, session, handle=link.handle, delivery_count=link.count & WRAP, link_credit=5)
    return None


@breaks("L-CREDIT-FORMULA")
def sender_tells_of_less_credit(peer: Peer) -> Said | None:
    for session, link in quiet_senders(peer):
        if link.grants == 1 and link.limit is not None and not link.aborted and link.attaches == 1:
            left = link.limit - link.count - 1
            if left > 0:
                count = link.count & WRAP
                return flow(peer, session, handle=link.handle, delivery_count=count, link_credit=left)
    return None


def available_reported(peer: Peer, value: int) -> Said | None:
    """A receiver's flow, legal but for what it tells of messages that wait: the sender reported about
    none."""
    reported = {s.channel for s in peer.talk.said[1 - peer.side] if s.fields.get("available")}
    for session, link in links(peer):
        if not link.sender and link.known is not None and link.attaches == 1 and not link.vague:
            if session.into not in reported and link.receiving is None:
                fields: Fields = {"delivery_count": link.known & WRAP, "link_credit": 1}
                return flow(peer, session, handle=link.handle, available=value, **fields)
    return None


@breaks("L-AVAIL-OWNER")
def receiver_tells_of_messages(peer: Peer) -> Said | None:
    return available_reported(peer, 4)


@breaks("L-AVAIL-FLOOR")
def receiver_counts_below_zero(peer: Peer) -> Said | None:
    return available_reported(peer, WRAP)


@breaks("L-DRAIN-OWNER")
def sender_drains_itself(peer: Peer) -> Said | None:
    drained = {s.channel for s in peer.talk.said[1 - peer.side] if s.fields.get("drain")}
    for session, link in quiet_senders(peer):
        if session.into not in drained:
            fields: Fields = {"delivery_count": link.count & WRAP, "link_credit": 0, "drain": True}
            return flow(peer, session, handle=link.handle, **fields)
    return None


@breaks("L-DRAIN-STATE")
def drained_with_credit_left(peer: Peer) -> Said | None:
    for session, link in quiet_senders(peer):
        if link.drain and link.grants == 1 and link.limit is not None and link.limit - link.count > 1:
            fields: Fields = {"delivery_count": (link.count + 1) & WRAP, "drain": True}
            return flow(peer, session, handle=link.handle, link_credit=link.limit - link.count - 1, **fields)
    return None


# ---- attaches ---------------------------------------------------------------------------------------------


def planted_attach(peer: Peer, role: bool, **changed: Any) -> Said | None:
    """An attach of a new link, legal but for what is changed."""
    for session in sessions(peer):
        handle = peer.free_handle(session)
        if handle is not None and session.out is not None:
            return peer.say("attach", session.out, **attach_fields(peer, handle, role, **changed))
    return None


@breaks("M-SRC-DYN-ADDR")
def dynamic_source_without_address(peer: Peer) -> Said | None:
    return planted_attach(peer, SENDER, source=amqp.source(dynamic=True))


@breaks("M-TGT-DYN-ADDR")
def dynamic_target_without_address(peer: Peer) -> Said | None:
    return planted_attach(peer, RECEIVER, target=amqp.target(dynamic=True))


@breaks("M-SRC-DYN-NOADDR")
def dynamic_source_requested_by_address(peer: Peer) -> Said | None:
    return planted_attach(peer, RECEIVER, source=amqp.source(address="a", dynamic=True))


@breaks("M-TGT-DYN-NOADDR")
def dynamic_target_requested_by_address(peer: Peer) -> Said | None:
    return planted_attach(peer, SENDER, target=amqp.target(address="b", dynamic=True))


def _said_by_attach(rule: str, role: bool, **terminus: Any) -> None:
    """A source that breaks a rule by itself."""

    def fault(peer: Peer) -> Said | None:
        return planted_attach(peer, role, source=amqp.source(**terminus))

    fault.__name__ = f"source_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


_said_by_attach("M-OUTCOMES-SYMBOL", RECEIVER, address="a", outcomes=["accepted"])
_said_by_attach("M-OUTCOME-VALID", RECEIVER, address="a", default_outcome=amqp.error(condition="x:y"))
_said_by_attach("M-FILTER-KEY", RECEIVER, address="a", filter=amqp.map_([("k", None)]))
_said_by_attach("M-FILTER-VALUE", RECEIVER, address="a", filter={"k": "v"})
_said_by_attach(
    "M-LIFETIME-VALUE",
    RECEIVER,
    dynamic=True,
    dynamic_node_properties={"lifetime-policy": amqp.symbol("for ever")},
)
_said_by_attach(
    "M-SUPPDIST-VALUE",
    RECEIVER,
    dynamic=True,
    dynamic_node_properties={"supported-dist-modes": amqp.string("move")},
)
_said_by_attach("M-DYNPROPS-UNSET", RECEIVER, address="a", dynamic_node_properties={})
_said_by_attach("T-ENUM-DURABILITY", SENDER, address="a", durable=3)
_said_by_attach("T-ENUM-EXPIRY", SENDER, address="a", expiry_policy="soon")


@breaks("TX-COORD-RESUME")
def coordinator_resumed(peer: Peer) -> Said | None:
    return planted_attach(peer, SENDER, target=amqp.coordinator(), unsettled={b"t": None})


@breaks("L-UNSETTLED-NULLKEY")
def unsettled_map_with_null_key(peer: Peer) -> Said | None:
    return planted_attach(peer, SENDER, unsettled={amqp.null(): None})


@breaks("T-STR-UTF8")
def name_that_is_no_text(peer: Peer) -> Said | None:
    return planted_attach(peer, RECEIVER, name=amqp.string(b"\xff"))


# ---- transactions -----------------------------------------------------------------------------------------


@breaks("TX-STATE-KNOWN")
def work_in_no_transaction(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        if not link.coordinator and peer.declared + len(peer.live):
            return delivery(peer, session, link, state=("transactional", b"never", None))
    return None


@breaks("TX-ID-TYPE")
def txn_id_too_long(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        if not link.coordinator:
            return delivery(peer, session, link, state=("transactional", b"x" * 33, None))
    return None


def control_links(peer: Peer) -> list[tuple[Session, Link]]:
    return [(s, link) for s, link in ready(peer) if link.coordinator and link.mine["snd_settle_mode"] != 0]


@breaks("TX-DISCHARGE-KNOWN")
def discharge_of_no_transaction(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        return delivery(peer, session, link, amqp.amqp_value(amqp.discharge(txn_id=b"never", fail=False)))
    return None


@breaks("TX-DECLARE-UNSETTLED")
def declare_settled(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        return delivery(peer, session, link, amqp.amqp_value(amqp.declare()), settled=True)
    return None


@breaks("TX-DISCHARGE-UNSETTLED")
def discharge_settled(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        complete = peer.complete()
        if complete:
            peer.live.remove(complete[0])
            body = amqp.discharge(txn_id=complete[0], fail=False)
            return delivery(peer, session, link, amqp.amqp_value(body), settled=True)
    return None


# ---- messages ---------------------------------------------------------------------------------------------


def message(peer: Peer, *sections: bytes) -> Said | None:
    for session, link in ready(peer):
        if not link.coordinator:
            return delivery(peer, session, link, b"".join(sections))
    return None


@breaks("M-BODY-PRESENT")
def message_without_body(peer: Peer) -> Said | None:
    return message(peer, amqp.header(durable=True))


@breaks("M-SECT-ORDER")
def header_after_properties(peer: Peer) -> Said | None:
    return message(peer, amqp.properties(subject="s"), amqp.header(durable=True), amqp.data(b"x"))


@breaks("M-SECT-ONCE")
def two_headers(peer: Peer) -> Said | None:
    return message(peer, amqp.header(durable=True), amqp.header(durable=True), amqp.data(b"x"))


@breaks("M-BODY-NOMIX")
def data_and_value(peer: Peer) -> Said | None:
    return message(peer, amqp.data(b"x"), amqp.amqp_value(amqp.uint(1)))


@breaks("M-BODY-ONEVALUE")
def two_values(peer: Peer) -> Said | None:
    return message(peer, amqp.amqp_value(amqp.uint(1)), amqp.amqp_value(amqp.uint(2)))


@breaks("T-CODE-UNKNOWN")
def unknown_constructor_in_message(peer: Peer) -> Said | None:
    return message(peer, amqp.amqp_value(amqp.raw(b"\x57\x00")))


def _said_by_message(rule: str, *sections: bytes, client: bool = False) -> None:
    """A message that breaks a rule whoever sends it; client: of a server it is only possible."""

    def fault(peer: Peer) -> Said | None:
        return message(peer, *sections) if peer.side == CLIENT or not client else None

    fault.__name__ = f"message_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


DATA = amqp.data(b"x")
_said_by_message("M-PAYLOAD-WHOLE", DATA, amqp.string("more"))
_said_by_message("M-SECT-TYPE", amqp.section("data", amqp.string("x")))
_said_by_message("M-ANN-KEYTYPE", amqp.section("message-annotations", amqp.map_([("x-opt-a", None)])), DATA)
_said_by_message(
    "M-AP-KEY", amqp.section("application-properties", amqp.map_([(amqp.symbol("a"), None)])), DATA
)
_said_by_message("M-AP-VALUE", amqp.application_properties({"a": amqp.list_([])}), DATA)
_said_by_message("T-DESC-RESERVED", amqp.amqp_value(amqp.described(amqp.uint(1), None)))
_said_by_message("T-DESC-SYMFORM", amqp.amqp_value(amqp.described("mine", None)))
_said_by_message("T-CHAR-UTF32", amqp.amqp_value(amqp.raw("73 00 11 00 00")))
_said_by_message("T-BOOL-OCTET", amqp.header(durable=amqp.raw("56 02")), DATA)
_said_by_message("T-MAP-DUPKEY", amqp.amqp_value(amqp.map_([("k", None), ("k", None)])))
_said_by_message("T-SYM-ASCII", amqp.amqp_value(amqp.raw("a3 01 e9")))
_said_by_message("T-ARR-CTOR", amqp.amqp_value(amqp.raw("e0 01 00")))
_said_by_message("T-LIST-FIT", amqp.amqp_value(amqp.raw("c0 03 01 41 42")))
_said_by_message("M-CT-MIME", amqp.properties(content_type="json"), DATA, client=True)
_said_by_message("M-CE-IDENTITY", amqp.properties(content_encoding="identity"), DATA, client=True)
_said_by_message("M-CE-NONDATA", amqp.properties(content_encoding="gzip"), amqp.amqp_value("x"), client=True)


# ---- framing ----------------------------------------------------------------------------------------------


@breaks("F-DOFF-MIN")
def data_offset_of_1(peer: Peer) -> Said | None:
    return octets(peer, "raw", amqp.frame(doff=1)) if working(peer) else None


@breaks("F-DOFF-RANGE")
def data_offset_beyond_the_frame(peer: Peer) -> Said | None:
    return octets(peer, "raw", amqp.frame(doff=3)) if working(peer) else None


@breaks("F-BODY-PERF")
def no_performative(peer: Peer) -> Said | None:
    return octets(peer, "raw", amqp.frame(amqp.accepted())) if working(peer) else None


@breaks("F-TYPE-KNOWN")
def unknown_frame_type(peer: Peer) -> Said | None:
    return octets(peer, "raw", amqp.frame(amqp.accepted(), type=7)) if working(peer) else None


@breaks("F-BODY-PAYLOAD")
def end_with_payload(peer: Peer) -> Said | None:
    for session in sessions(peer):
        assert session.out is not None
        raw = amqp.frame(encoded_body("end"), b"\x41", channel=session.out)
        return octets(peer, "raw", raw)
    return None


def encoded_body(name: str, **fields: Any) -> bytes:
    return amqp.composite(name, **fields)


@breaks("P-FLOW-MAND")
def flow_without_window(peer: Peer) -> Said | None:
    for session in sessions(peer):
        name = peer.random.choice(["incoming_window", "outgoing_window", "next_outgoing_id"])
        return flow(peer, session, **{name: None})
    return None


@breaks("P-BEGIN-MAND")
def begin_without_window(peer: Peer) -> Said | None:
    free = peer.free_channel() if working(peer) else None
    return None if free is None else peer.say("begin", free, **begin_fields(peer, incoming_window=None))


@breaks("P-ATTACH-MAND")
def attach_without_name(peer: Peer) -> Said | None:
    for session in sessions(peer):
        handle = peer.free_handle(session)
        if handle is not None and session.out is not None:
            return peer.say("attach", session.out, **attach_fields(peer, handle, RECEIVER, name=None))
    return None


@breaks("P-TRANSFER-MAND")
def transfer_without_handle(peer: Peer) -> Said | None:
    for session, link in ready(peer):
        return delivery(peer, session, link, handle=None)
    return None


@breaks("P-DISP-MAND")
def disposition_without_first(peer: Peer) -> Said | None:
    for session in sessions(peer):
        assert session.out is not None
        return peer.say("disposition", session.out, role=RECEIVER, first=None, settled=True)
    return None


@breaks("P-DETACH-MAND")
def detach_without_handle(peer: Peer) -> Said | None:
    for session in sessions(peer):
        assert session.out is not None
        return peer.say("detach", session.out, handle=None)
    return None


@breaks("P-ERROR-MAND")
def error_without_condition(peer: Peer) -> Said | None:
    if working(peer) and peer.chance(0.05):
        peer.close_sent = True
        return octets(peer, "close", amqp.frame(amqp.close(error=amqp.error(condition=None))))
    return None


@breaks("P-OPEN-MAND")
def open_without_container_id(peer: Peer) -> Said | None:
    if peer.header_sent and not peer.open_sent:
        peer.open_sent = True
        return peer.say("open", container_id=None)
    return None


@breaks("T-COMP-TYPE")
def field_of_another_type(peer: Peer) -> Said | None:
    for session in sessions(peer):
        return flow(peer, session, outgoing_window=amqp.string("no number"))
    return None


# ---- SASL -------------------------------------------------------------------------------------------------


def sasl_fault(peer: Peer, name: str, **fields: Any) -> Said:
    peer.failed = True
    return peer.say(name, **fields)


@breaks("SA-INIT-OFFERED")
def mechanism_not_offered(peer: Peer) -> Said | None:
    if (
        peer.sasl_header_sent
        and "sasl-mechanisms" in peer.sasl_heard
        and not peer.sasl_said
        and peer.side == 0
    ):
        return sasl_fault(peer, "sasl-init", mechanism="GSSAPI")
    return None


@breaks("SA-MECH-FIRST")
def outcome_before_mechanisms(peer: Peer) -> Said | None:
    if peer.side == SERVER and peer.sasl_header_sent and not peer.sasl_said:
        return sasl_fault(peer, "sasl-outcome", code=0)
    return None


@breaks("SA-INIT-AFTER")
def init_before_mechanisms(peer: Peer) -> Said | None:
    if peer.side == CLIENT and peer.sasl_header_sent and "sasl-mechanisms" not in peer.sasl_heard:
        return sasl_fault(peer, "sasl-init", mechanism="PLAIN")
    return None


@breaks("SA-SEQ-CHAL")
def challenge_before_init(peer: Peer) -> Said | None:
    if peer.side == SERVER and "sasl-mechanisms" in peer.sasl_said and "sasl-init" not in peer.sasl_heard:
        return sasl_fault(peer, "sasl-challenge", challenge=b"c")
    return None


@breaks("SA-SEQ-INIT")
def success_before_init(peer: Peer) -> Said | None:
    if peer.side == SERVER and "sasl-mechanisms" in peer.sasl_said and "sasl-init" not in peer.sasl_heard:
        return sasl_fault(peer, "sasl-outcome", code=0)
    return None


@breaks("SA-SEQ-RESP")
def response_without_challenge(peer: Peer) -> Said | None:
    answered = peer.sasl_heard.count("sasl-challenge") <= peer.sasl_said.count("sasl-response")
    if peer.side == CLIENT and "sasl-init" in peer.sasl_said and answered and not peer.sasl_done:
        return sasl_fault(peer, "sasl-response", response=b"r")
    return None


@breaks("SA-SEQ-OUTCOME")
def challenge_after_outcome(peer: Peer) -> Said | None:
    if peer.side == SERVER and "sasl-outcome" in peer.sasl_said and not peer.header_sent:
        return sasl_fault(peer, "sasl-challenge", challenge=b"c")
    return None


@breaks("SA-OK-HDR-EARLY")
def header_before_the_outcome(peer: Peer) -> Said | None:
    if peer.side == CLIENT and "sasl-init" in peer.sasl_said and not peer.sasl_done:
        return sasl_fault(peer, "header", id=0)
    return None


@breaks("SA-OK-HDR")
def open_without_a_second_header(peer: Peer) -> Said | None:
    if peer.sasl_header_sent and peer.sasl_done and not peer.failed and not peer.header_sent:
        return sasl_fault(peer, "open", container_id="x")
    return None


@breaks("SA-INIT-ONCE")
def second_init(peer: Peer) -> Said | None:
    if peer.side == 0 and "sasl-init" in peer.sasl_said and not peer.sasl_done:
        return sasl_fault(peer, "sasl-init", mechanism="PLAIN")
    return None


@breaks("SA-ROLE")
def client_sends_outcome(peer: Peer) -> Said | None:
    if peer.side == 0 and peer.sasl_header_sent and not peer.sasl_done:
        return sasl_fault(peer, "sasl-outcome", code=0)
    return None


@breaks("SA-FRAME-512")
def large_sasl_frame(peer: Peer) -> Said | None:
    if (
        peer.sasl_header_sent
        and "sasl-mechanisms" in peer.sasl_heard
        and not peer.sasl_said
        and peer.side == 0
    ):
        return sasl_fault(
            peer, "sasl-init", mechanism="PLAIN", initial_response=b"x" * (peer.least_frame_size + 90)
        )
    return None


@breaks("SA-OUTCOME-DATA")
def data_with_failure(peer: Peer) -> Said | None:
    if peer.side == 1 and "sasl-init" in peer.sasl_heard and not peer.sasl_done:
        return sasl_fault(peer, "sasl-outcome", code=1, additional_data=b"x")
    return None


@breaks("F-TYPE-PHASE")
def open_in_the_sasl_layer(peer: Peer) -> Said | None:
    if peer.sasl_header_sent and not peer.sasl_done:
        peer.failed = True
        return peer.say("open", container_id="x")
    return None


# ---- more of them, by subject -----------------------------------------------------------------------------

import support.delivery_faults  # noqa: E402, F401
