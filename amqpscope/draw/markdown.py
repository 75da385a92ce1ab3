"""A ladder as Markdown with a sequence diagram of Mermaid, which forges and documentation tools render."""

import re
from collections.abc import Iterator

from amqpscope.draw.words import finding_text, heading_text, peer_text
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.report.ladder_model import Arrow, Ladder
from amqpscope.report.printable import cut

__all__ = ["ladder_markdown"]

_LONGEST = 90
"""Characters of a frame's text."""

_PLAIN = re.compile(r"[^A-Za-z0-9 .,/=@_×→←-]")


def ladder_markdown(ladder: Ladder, capture: str) -> str:
    """The ladder as a file: a heading, the diagram, and the findings as a list."""
    return "\n".join(_lines(ladder, capture)) + "\n"


def _lines(ladder: Ladder, capture: str) -> Iterator[str]:
    yield f"# {_entities(capture)}: {_entities(heading_text(ladder.connection))}"
    yield ""
    yield "```mermaid"
    yield "sequenceDiagram"
    for peer, short in ((CLIENT, "C"), (SERVER, "S")):
        name, address = peer_text(ladder.connection, peer)
        yield f"    participant {short} as {_escaped(cut(name, 40))}<br/>{_escaped(address)}"
    for row in ladder.rows:
        if not isinstance(row, Arrow):
            yield f"    Note over C,S: {_escaped(row.text)}"
            continue
        way = "C-{0}S" if row.peer == CLIENT else "S-{0}C"
        if row.kind in ("skipped", "end"):
            way = way.replace("-{0}", "--{0}")
        text = _escaped(f"{row.packet}: {cut(row.text, _LONGEST)}")
        yield f"    {way.format('x' if row.kind == 'end' else '>>')}: {text}"
        for finding in row.findings:
            yield f"    Note over C,S: {_escaped(finding_text(finding, row.at_fault(finding)))}"
    yield "```"
    found = [(row, finding) for row in ladder.arrows for finding in row.findings]
    if found:
        yield ""
    for row, finding in found:
        yield f"- {_entities(f'packet {row.packet}: {finding_text(finding, row.at_fault(finding))}')}"


def _escaped(text: str) -> str:
    """Text of a diagram: what Mermaid could take for more than text, as the number of the character."""
    return _PLAIN.sub(lambda match: f"#{ord(match[0])};", text)


def _entities(text: str) -> str:
    """Text of Markdown: what could be more than text, as an entity of HTML."""
    return _PLAIN.sub(lambda match: f"&#{ord(match[0])};", text).replace("_", "&#95;")
