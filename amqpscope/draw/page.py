"""The page of `amqpscope draw`: all pictures of a capture. Why it is safe: `amqpscope.report.page`."""

from typing import Any, Final

from amqpscope.draw.picture import Picture
from amqpscope.draw.survey import Survey, SurveyedConnection
from amqpscope.draw.words import heading_text, peer_text
from amqpscope.limits import MAX_DRAWN_ROWS, MAX_PAGE_OCTETS
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.report import page
from amqpscope.report.diagnosis_text import diagnosis_line, is_trouble
from amqpscope.report.finding_counts import kind
from amqpscope.report.findings import message_of
from amqpscope.report.ladder_model import Arrow, Fold, Ladder, Remark, Row
from amqpscope.report.page import data_text, resource
from amqpscope.report.printable import cut, printable
from dissectors.wording import are, count

__all__ = ["page_html", "rows_of_each"]

_SCRIPTS: Final = ("states.js", "flow.js", "map.js", "page.js")
"""The files of the page's script, in their order."""

_ROW: Final = 900
"""Octets of a row of the page, nearly always fewer."""

_FEWEST: Final = 40
"""Rows that a connection has at least."""

_SAYS: Final = 300
"""Characters of a frame's line."""

_FIELDS: Final = 2000
"""Characters of a frame's fields."""


def rows_of_each(survey: Survey) -> int:
    """How many frames of each connection a page has room for."""
    # The other half is for the other views.
    room = _room(survey) // 2 // (_ROW * max(len(survey.connections), 1))
    return min(max(room, _FEWEST), MAX_DRAWN_ROWS)


def page_html(picture: Picture) -> str:
    """The whole file."""
    own = "amqpscope.draw"
    script = "".join(resource(own, name) for name in _SCRIPTS)
    return page.page_html(
        picture.survey.title,
        resource(own, "page.html"),
        resource(own, "page.css"),
        script,
        _fitting(picture),
    )


def _room(survey: Survey) -> int:
    """Octets of data that a page may have."""
    return min(MAX_PAGE_OCTETS, 700_000 + survey.octets)


def _fitting(picture: Picture) -> str:
    """The data of the page. What does not fit is left out, and the page says so: fields, then connections."""
    room = _room(picture.survey)
    shown = [_connection(one, ladder, picture) for one, ladder in picture.ladders]
    sizes = [len(data_text(one)) for one in shown]
    for connection in reversed(shown) if sum(sizes) > room else ():
        for row in connection["rows"]:
            if not row.get("found"):
                row.pop("fields", None)
    sizes = [len(data_text(one)) for one in shown]
    while len(shown) > 1 and sum(sizes) > room:
        shown.pop()
        sizes.pop()
    return data_text(_capture(picture, shown))


def _capture(picture: Picture, connections: list[dict[str, Any]]) -> dict[str, Any]:
    survey = picture.survey
    folded = sum(ladder.folded for _, ladder in picture.ladders)
    others = survey.more + len(survey.connections) - len(connections)
    contents = f"This page shows {count(len(connections), 'connection')}"
    if others:
        contents += f", the worst ones; {others} more {are(others)} not in it"
    if folded:
        contents += f". {count(folded, 'frame')} that repeat others {are(folded)} folded and only counted"
    return {
        "title": survey.title,
        "overview": [
            {"text": printable(one.text), "advice": printable(one.advice), "packet": one.packet}
            for one in survey.sentences
        ],
        "contents": f"{contents}.",
        "notes": survey.notes,
        "diagrams": {one.title: one.json() for paths in picture.paths.values() for one in paths.diagrams()},
        "connections": connections,
    }


def _connection(one: SurveyedConnection, ladder: Ladder, picture: Picture) -> dict[str, Any]:
    paths, flow, drawn = picture.paths.get(one.key), picture.flows.get(one.key), picture.maps.get(one.key)
    start = ladder.start
    return {
        "stream": int(one.connection.stream),
        "id": one.connection.id,
        "heading": heading_text(one.connection),
        "client": peer_text(one.connection, CLIENT),
        "server": peer_text(one.connection, SERVER),
        "ended": printable(one.row.ended),
        "more": one.more_findings,
        "rows": [_row(row, start) for row in ladder.rows],
        "paths": [] if paths is None else paths.json(),
        "morePaths": 0 if paths is None else paths.more,
        "flow": {"charts": [], "more": False, "latencies": []} if flow is None else flow.json(start),
        "map": {} if drawn is None else drawn.json(one.findings),
        "last": max((row.time for row in ladder.rows if isinstance(row, Arrow)), default=start) - start,
        "diagnoses": [_diagnosis(each, picture.times, start) for each in one.diagnoses],
    }


def _diagnosis(one: Diagnosis, times: dict[int, int], start: int) -> dict[str, Any]:
    """A diagnosis, and from when to when it holds if the capture has both ends."""
    found: dict[str, Any] = {
        "text": "".join(text for _, text in diagnosis_line(one)),
        "packet": one.packet,
        "trouble": is_trouble(one),
        "who": one.whose_move,
        "subject": printable(one.subject),
    }
    if one.packet in times:
        begin = times[one.packet]
        end = times.get(one.ended_packet, begin + round(max(one.seconds, 0) * 1e9))
        found |= {"from": begin - start, "until": end - start}
    return found


def _row(row: Row, start: int) -> dict[str, Any]:
    """A row. Times are nanoseconds since the first row of the ladder."""
    if not isinstance(row, Arrow):
        found: dict[str, Any] = {"kind": type(row).__name__.lower(), "packet": row.packet, "text": row.text}
        if isinstance(row, Fold):
            found |= {"time": row.time - start, "last": row.last_packet, "findings": row.findings}
        if isinstance(row, Remark) and row.time >= 0:
            found["time"] = row.time - start
        return found
    found = {
        "kind": "arrow",
        "peer": row.peer,
        "packet": row.packet,
        "time": row.time - start,
        "channel": row.channel,
        "name": row.name,
        "says": cut("".join(text for _, text in row.says).rstrip(), _SAYS),
        "offset": row.offset,
        "behind": row.behind,
        "acknowledged": row.acknowledged,
        "must": row.read.octets,
        "lands": row.lands,
    }
    if row.read.sessions:
        found["read"] = {str(channel): end for channel, end in row.read.sessions.items()}
    if row.kind in ("end", "skipped"):
        found["lost"] = True
    if row.link:
        found["link"] = row.link
    if row.findings:
        found["found"] = [_found(finding, row.at_fault(finding)) for finding in row.findings]
    fields = "\n".join("".join(text for _, text in line).rstrip()[6:] for line in row.fields)
    if fields:
        found["fields"] = cut(fields, _FIELDS) if len(fields) > _FIELDS else fields
    return found


def _found(finding: Finding, by: str) -> dict[str, Any]:
    """A finding. by: see `Arrow.at_fault`."""
    return {
        "certain": finding.certain,
        "kind": kind(finding),
        "rule": printable(finding.rule),
        "by": by,
        "text": printable(message_of(finding)),
    }
