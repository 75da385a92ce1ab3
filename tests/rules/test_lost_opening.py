"""Peers that do nothing wrong are not accused where the frames that open their connection are lost.

The opening shows which dialect of AMQP 1.0 a peer speaks. Without it, the dialect may stay open, and the
findings of one dialect's rules do not hold for a peer that speaks the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.dialogue_draft2011 import Dialogue2011
from support.judged import judged
from support.legal import Said
from support.network import Conversation, Segment, Tap, captured, converse
from support.sampling import examples, thorough

from amqpscope.model.finding import Finding

CONVERSATIONS = 300 if thorough() else examples(10)
LOSSES = 8 if thorough() else 3

OPENING = ("header", "open", "begin", "attach")

CUT = Path(__file__).parents[2] / "captures/rules/amqp10-draft2011/T-CODE-LATER/cut.pcap"

DIALECT = "amqp10/C-DIALECT-1239"

Lost = Callable[[Said], bool]


def findings(octets: bytes) -> list[Finding]:
    while_read, at_end = judged(octets)
    return while_read + at_end


def accusations(octets: bytes) -> set[tuple[str, str]]:
    """The rule and the peer of each finding that is certain, or that names the wrong dialect.

    A legal conversation may have other warnings.
    """
    return {(one.rule, one.peer) for one in findings(octets) if one.certain or one.rule == DIALECT}


def kept(conversation: Conversation, lost: Lost) -> Iterator[Segment]:
    """The segments, without the octets of the frames that are lost."""
    for segment in conversation.segments:
        if not segment.octets:
            yield segment
        end = segment.start + len(segment.octets)
        for said in conversation.talk.said[segment.side]:
            first, last = max(said.start, segment.start), min(said.end, end)
            if first < last and not lost(said):
                octets = segment.octets[first - segment.start : last - segment.start]
                yield replace(segment, start=first, octets=octets)


def opening_lost(random: Random) -> Lost:
    """Of each peer, any of the frames that open a connection, a session or a link; SASL, too."""
    names = [{name for name in OPENING if random.random() < 0.7} for _ in (0, 1)]
    return lambda said: said.name in names[said.side] or said.name.startswith("sasl-")


def beginning_lost(random: Random, conversation: Conversation) -> Lost:
    """Of each peer, all frames up to one."""
    starts = [random.choice(stream).end if stream else 0 for stream in conversation.talk.said]
    return lambda said: said.start < starts[said.side]


@pytest.mark.parametrize("protocol", ["amqp10", "amqp10-draft2011"])
def test_no_peer_is_accused_for_an_opening_that_was_lost(protocol: str) -> None:
    for number in range(CONVERSATIONS):
        random = Random(f"lost opening {protocol} {number}")
        length = random.choice([10, 30, 60, 100])
        conversation = converse(f"lost opening {number}", protocol=protocol, lossy=False, length=length)
        known = accusations(captured(conversation, Tap()).octets)
        for loss in range(LOSSES):
            lost = opening_lost(random) if loss % 3 else beginning_lost(random, conversation)
            left = replace(conversation, segments=list(kept(conversation, lost)))
            found = accusations(captured(left, Tap(start=random.choice([0, 3]))).octets)
            assert found <= known, (conversation.seed, loss)


def test_a_later_format_code_does_not_show_the_final_specification() -> None:
    """A flow with such a code fits both dialects. Only in the draft does the next one have a boolean."""
    assert findings(CUT.read_bytes()) == []


@pytest.mark.parametrize("before", [1, 7, 8, 9, 20])
def test_flows_that_fit_both_dialects_before_one_that_fits_only_the_draft(before: int) -> None:
    """Analysis does not wait for ever: it reads frames as final ones until one speaks for the draft."""
    d = Dialogue2011()
    d.begun()
    first = d.client.flow()
    for _ in range(before):
        d.client.flow()
    d.client.flow(echo=True)
    d.client.flow(echo=True)
    d.goodbye()
    del d.capture.packets[: d.packet_number(first) - 1]
    assert findings(d.pcap()) == []


def without_opens(d: Dialogue2011) -> None:
    """The capture lacks the packets of both opens."""
    lost = sorted(d.packet_number(d.labels[f"{name} open"]) for name in ("client", "server"))
    for packet in reversed(lost):
        del d.capture.packets[packet - 1]


@pytest.mark.parametrize("empty", [0, 20])
@pytest.mark.parametrize("speaker", ["client", "server"])
def test_a_peer_that_shows_the_draft_late_beside_one_that_shows_nothing(speaker: str, empty: int) -> None:
    """Analysis waits for a few frames only. The other peer may speak the draft, too."""
    d = Dialogue2011()
    d.opened()
    peer = getattr(d, speaker)
    for _ in range(empty):
        peer.empty()
    peer.begin()
    peer.attach()
    peer.flow(echo=True)
    without_opens(d)
    assert findings(d.pcap()) == []


@pytest.mark.parametrize("empty", [2, 3, 4])
def test_no_rule_judges_a_connection_whose_dialect_stays_unknown(empty: int) -> None:
    """A close with an error shows one sign of the draft, which does not suffice."""
    d = Dialogue2011()
    d.opened()
    for _ in range(empty):
        d.client.empty()
    d.client.close()
    d.server.close(error="amqp:internal-error")
    d.tcp.goodbye()
    without_opens(d)
    assert findings(d.pcap()) == []
