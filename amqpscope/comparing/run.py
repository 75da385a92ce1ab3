"""One capture, read to be compared: the story of each of its connections, and its findings by fingerprint."""

from collections.abc import Iterable

from amqpscope.comparing.forms import FormTable
from amqpscope.comparing.forms091 import Forms091
from amqpscope.comparing.forms10 import Forms10
from amqpscope.comparing.story import Names, Room, Story
from amqpscope.comparing.story091 import Story091
from amqpscope.comparing.story10 import Story10
from amqpscope.finding import Finding
from amqpscope.fingerprint import fingerprint
from amqpscope.limits import MAX_COMPARED_CONNECTIONS, MAX_DIFFERENCES
from amqpscope.model import Connection, FrameRecord
from amqpscope.note import Note
from amqpscope.policy.policy import Rulings
from amqpscope.reading import Capture
from amqpscope.report.links import LinkNames

__all__ = ["Found", "Run"]


class Found:
    """A finding, and how many of its fingerprint there are. counts: one of them makes a difference."""

    def __init__(self, first: Finding) -> None:
        self.first = first
        self.count = 0
        self.counts = False


class Run:
    """What a capture holds. stories: of its connections with AMQP, in the order in which they began.

    encrypted: connections of which nothing can be read. left_out: those beyond the bound. findings: by
    fingerprint, the first of many; findings_left_out: how many are not among them.
    """

    def __init__(self, name: str, table: FormTable, rulings: Rulings) -> None:
        self.name = name
        self.stories: list[Story] = []
        self.frames = 0
        self.notes: list[Note] = []
        self.protocols: dict[str, int] = {}
        self.encrypted = 0
        self.left_out = 0
        self.findings: dict[str, Found] = {}
        self.findings_left_out = 0
        self._table = table
        self._rulings = rulings
        self._names = Names()
        self._forms10 = Forms10(self._names)
        self._forms091 = Forms091(self._names)
        self._room = Room()
        self._links = LinkNames()
        self._known: dict[Connection, Story | None] = {}

    def read(self, capture: Capture) -> None:
        """Take all of a capture, which judges and keeps no connections."""
        for records in capture.blocks():
            capture.each(records, self._take)
            self._find(capture.take_findings())
        self._find(capture.take_findings())
        for story in self.stories:
            story.finish()
        self._known.clear()
        self._links = LinkNames()
        self.notes = capture.notes
        self.protocols = capture.protocols

    def _take(self, record: FrameRecord) -> None:
        self.frames += 1
        connection = record.connection
        link = self._links.of(record)
        if connection in self._known:
            story = self._known[connection]
        else:
            story = self._known[connection] = self._begin(connection)
            if story is not None:
                story.midstream = not record.started
        if story is None:
            return
        frame = record.frame
        if frame.kind == "skipped" and frame.missing:
            story.cut("octets are missing in the capture", int(record.packet))
        if story.over:
            self._links.forget(connection)
        elif not story.cut_for:
            story.take(record, link, self._links)
            if story.cut_for and story.cut_at < 0:
                story.cut_at = int(record.packet)
        story.frames += 1

    def _begin(self, connection: Connection) -> Story | None:
        """A connection appears."""
        if len(self.stories) >= MAX_COMPARED_CONNECTIONS:
            self.left_out += 1
            return None
        story: Story
        if connection.protocol.startswith("amqp10"):
            story = Story10(connection, self._room, self._table, self._names, self._forms10)
        elif connection.protocol == "amqp091":
            story = Story091(connection, self._room, self._table, self._names, self._forms091)
        else:
            return None
        self.stories.append(story)
        return story

    def _find(self, found: Iterable[Finding]) -> None:
        for finding in found:
            if not self._rulings.decide(finding):
                continue
            mark = fingerprint(finding)
            known = self.findings.get(mark)
            if known is None:
                if len(self.findings) >= MAX_DIFFERENCES:
                    self.findings_left_out += 1
                    continue
                known = self.findings[mark] = Found(finding)
            known.count += 1
            known.counts = known.counts or self._rulings.policy.counts(finding)
