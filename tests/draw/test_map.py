"""The map: sessions, links, channels, exchanges and queues, with messages, rates and faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.pictures import picture_of


def drawn(d: Dialogue | Dialogue091, tmp_path: Path) -> Any:
    """The map of a conversation, as the page has it."""
    path = tmp_path / "talk.pcap"
    path.write_bytes(d.pcap())
    picture = picture_of(path)
    (found,) = picture.maps.values()
    return found.json(picture.survey.connections[0].findings)


def test_sessions_links_and_addresses(tmp_path: Path) -> None:
    d = Dialogue()
    d.begun()
    target = amqp.target(address="amqp://user:secret@host/orders")
    d.client.attach(SENDER, name="out", target=target)
    d.server.attach(RECEIVER, name="out", target=target)
    d.server.flow(handle=0, link_credit=2)
    for _ in range(3):
        d.client.transfer()
        d.wait(seconds=0.5)
    d.server.disposition(0, 1, state=amqp.rejected())
    d.server.detach(error="amqp:link:transfer-limit-exceeded")
    d.client.attach(RECEIVER, handle=1, name="in", source=amqp.source(address="answers"))
    found = drawn(d, tmp_path)
    (session,) = found["units"]
    out, into = session["lines"]
    assert session["title"] == "session 0" and (found["bindings"], found["more"]) == ([], False)
    assert (out["title"], out["sender"], out["kind"]) == ("link out", "client", "address")
    assert out["place"] == "amqp://user:(hidden)@host/orders"
    assert (out["messages"], out["refused"]) == (3, 2) and 1.9 < out["rate"] < 2.1
    assert out["error"] == "amqp:link:transfer-limit-exceeded"
    # The third message had no credit.
    assert out["found"] == 1
    assert (into["title"], into["sender"], into["place"]) == ("link in", "server", "answers")
    assert (into["messages"], into["rate"], into["found"]) == (0, 0, 0)


def test_a_link_that_is_attached_again_has_one_line(tmp_path: Path) -> None:
    d = Dialogue()
    d.begun()
    for _ in range(2):
        d.client.attach(SENDER, name="out")
        d.server.attach(RECEIVER, name="out")
        d.server.flow(handle=0, link_credit=1)
        d.client.transfer(settled=True)
        d.client.detach()
        d.server.detach()
    (session,) = drawn(d, tmp_path)["units"]
    assert [(line["title"], line["messages"]) for line in session["lines"]] == [("link out", 2)]


def test_channels_exchanges_and_queues(tmp_path: Path) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("jobs")
    d.bind("jobs", exchange="amq.direct")
    d.client.method("queue.bind", queue="jobs", exchange="refused", routing_key="k")
    d.client.method("queue.bind", queue="jobs", exchange="amq.fanout", no_wait=True)
    d.client.publish(exchange="amq.direct", routing_key="k")
    d.client.publish(routing_key="jobs")
    d.consume("jobs", consumer_tag="worker")
    d.server.deliver(consumer_tag="worker")
    d.client.reject()
    found = drawn(d, tmp_path)
    (channel,) = found["units"]
    assert channel["title"] == "channel 1" and found["host"] == "/"
    # The server did not answer the second queue.bind.
    assert found["bindings"] == [["amq.direct", "queue", "jobs"], ["amq.fanout", "queue", "jobs"]]
    shown = [
        (line["title"], line["sender"], line["kind"], line["place"], line["messages"], line["refused"])
        for line in channel["lines"]
    ]
    assert shown == [
        ("publishes", "client", "exchange", "amq.direct", 1, 0),
        ("publishes", "client", "queue", "jobs", 1, 0),
        ("consumer worker", "server", "queue", "jobs", 1, 1),
    ]


def test_a_map_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.draw.map.MAX_MAP_LINES", 2)
    d = Dialogue()
    d.begun()
    for number in range(4):
        d.client.attach(SENDER, name=f"out-{number}", handle=number)
    found = drawn(d, tmp_path)
    assert [line["title"] for line in found["units"][0]["lines"]] == ["link out-0", "link out-1"]
    assert found["more"] is True
