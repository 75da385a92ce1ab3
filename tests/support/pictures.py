"""Pictures for tests: what `draw` draws of a capture, its page, and captures full of given texts."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import amqp10_encode as amqp
from support.browser import Browser
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

from amqpscope.draw.picture import Picture, PictureBuilder
from amqpscope.draw.survey import survey
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.selection import EVERYTHING

__all__ = ["opened", "page_data", "picture_of", "planted091", "planted10"]


def picture_of(path: Path) -> Picture:
    """The picture of the worst connection of a capture, with all that a page has."""
    options = CaptureOptions(judge=True, keep=False, ended=True)
    with Capture(str(path), options) as capture:
        surveyed = survey(capture)
    with Capture(str(path), options) as capture:
        return PictureBuilder(surveyed, surveyed.connections[:1], EVERYTHING, fields=True).read(capture)


def page_data(page: Path) -> Any:
    """The data of a page."""
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.S
    )
    assert found is not None
    return json.loads(found[1])


def opened(browser: Browser, path: Path) -> Browser:
    """The browser, with a page that it has just opened."""
    browser.problems, browser.requests = [], []
    browser.open(path)
    assert browser.value("document.documentElement.dataset.ready") == "yes"
    return browser


def planted10(texts: Sequence[str]) -> bytes:
    """A capture of AMQP 1.0 with the texts, in turn, wherever there is room for one."""
    turn = itertools.cycle(texts)
    product = [
        (amqp.symbol("product"), amqp.string(next(turn))),
        (amqp.symbol("version"), amqp.string(next(turn))),
    ]
    d = Dialogue()
    d.headers()
    d.client.open(container_id=next(turn), hostname=next(turn), properties=product)
    d.server.open(container_id=next(turn), properties=product)
    d.client.begin()
    d.server.begin()
    name = next(turn)
    d.client.attach(name=name, source=amqp.source(address=next(turn)), target=amqp.target(address=next(turn)))
    d.server.attach(name=name, role=True, target=amqp.target(address=next(turn)))
    d.client.attach(name=next(turn), channel=3, source=amqp.source(address=next(turn)))
    d.client.transfer(delivery_tag=next(turn).encode()[:32])
    for _ in range(2):
        d.client.frame(amqp.close(error=amqp.error(condition="x:y", description=next(turn))))
    return d.pcap()


def planted091(texts: Sequence[str]) -> bytes:
    """A capture of AMQP 0-9-1 with the texts, in turn, wherever there is room for one."""
    turn = itertools.cycle(text.encode()[:80].decode("utf-8", "ignore") for text in texts)
    d = Dialogue091()
    d.opened()
    d.channel(1)
    queue, tag, exchange = next(turn), next(turn), next(turn)
    d.declare(queue)
    d.ask("queue.bind", queue=queue, exchange=exchange, routing_key=next(turn))
    d.consume(queue, consumer_tag=tag)
    d.client.publish(next(turn).encode(), exchange=exchange, routing_key=next(turn))
    d.server.deliver(consumer_tag=tag, exchange=exchange, routing_key=next(turn))
    d.client.ack(77)
    d.server.close_channel(406, next(turn), cause="basic.ack")
    return d.pcap()
