"""A ladder before it is drawn: the frames of one connection as arrows between client and server, in rows.

Text, SVG, Mermaid and the page are renderers of this model. A row is one of these:

- `Arrow`: a frame, or the end of a stream at which something is missing, with the findings there;
- `Fold`: frames that are only counted, because they repeat what was drawn before;
- `Silence`: half a second or more without a frame, also before the end of a stream;
- `Remark`: a sentence about the connection, such as a diagnosis, below the frame where it begins.

Frames in flight. A frame carries what its sender had acknowledged. So a frame of the other peer that does not
acknowledge an arrow was sent before that peer can have known of it. `Arrow.lands` is the last such row: there
the arrow is still in flight.

Folding. Of each frame name of a peer the first few are drawn. The others are folded, unless a diagnosis is
near, or one of the first findings of a rule.

Text from the wire enters the model only through `TextRenderer` and `printable`.
"""

from collections import Counter, deque
from collections.abc import Iterable, Set
from typing import Final

from amqpscope.limits import MAX_DRAWN_ROWS
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.report.json_renderers import FORMS
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import printable
from amqpscope.report.redaction import guard
from amqpscope.report.text_renderers import text_renderer
from amqpscope.rules.peer_error import FIN, RST
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wording import count

__all__ = [
    "Arrow",
    "Fold",
    "Ladder",
    "LadderBuilder",
    "Read",
    "Remark",
    "Row",
    "Silence",
    "ladders",
    "offset_text",
]

_SILENCE = 500_000_000
"""Nanoseconds without a frame that are reported: half a second."""

_FIRST = 4
"""Frames of one name and one peer that are drawn before the others are folded."""

_SAME = 10
"""Findings of one rule by one peer whose frames are drawn before further ones are folded."""

_NEAR = 3
"""Frames before and behind a frame of interest that are not folded."""

_WORTH = 3
"""Frames that are worth a fold: fewer are drawn."""

_Place = tuple[str, int, int, str]


class Read:
    """What the sender of a frame had processed of the other stream for certain.

    octets: as many, -1 if that is unknown. sessions: for frames of a session that is read apart from others,
    up to where, by the channel on which the other peer sends them; empty if `octets` counts for all frames.
    """

    def __init__(self, octets: int = -1, sessions: dict[int, int] | None = None) -> None:
        self.octets = octets
        self.sessions = sessions or {}


UNREAD: Final = Read()
"""Of frames of which nothing is known."""


class Arrow:
    """A frame, or an end of a stream. says: what the frame says, without its name. Of an end, it is
    what brought the end: `by FIN`, `by RST`, or empty if unknown.

    peer: who sent it. A finding at an end may be about the other peer (`at_fault`).
    packet, time (ns since 1970): of the first octet. channel: -1 for none. link: its name, "" for none.
    kind: of the frame, `end` for the end of a stream. offset, behind: where the frame begins and ends in its
    sender's stream. acknowledged: octets of the other stream that the sender had acknowledged, -1 if unknown.
    read: what of the other stream the sender had processed for certain, as its frames show. lands: the last
    row where the frame is known to be still in flight; its own row if none is.
    fields: lines with all fields of the frame, if they were asked for.
    """

    def __init__(self, peer: str, packet: int, time: int, name: str, kind: str) -> None:
        self.peer = peer
        self.packet = packet
        self.time = time
        self.name = name
        self.kind = kind
        self.channel = -1
        self.link = ""
        self.says: Line = []
        self.fields: list[Line] = []
        self.offset = -1
        self.behind = -1
        self.acknowledged = -1
        self.read = UNREAD
        self.lands = -1
        self.findings: list[Finding] = []

    @property
    def text(self) -> str:
        """The name and what the frame says, as one line."""
        return f"{self.name} {''.join(text for _, text in self.says)}".rstrip()

    def at_fault(self, finding: Finding) -> str:
        """` by the client` if not the sender of this frame but the other peer is at fault, else ""."""
        return "" if finding.peer == self.peer else f" by the {finding.peer}"


class Fold:
    """Frames that are not drawn. counts: how many of each peer and name. findings: how many are at them.

    packet, time: of the first frame. last_packet, last_time: of the last.
    """

    def __init__(self, arrows: Iterable[Arrow]) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.packet = self.time = self.last_packet = self.last_time = -1
        self.findings = 0
        for arrow in arrows:
            self.add(arrow)

    def add(self, arrow: Arrow) -> None:
        """One more frame."""
        if self.packet < 0:
            self.packet, self.time = arrow.packet, arrow.time
        self.last_packet, self.last_time = arrow.packet, arrow.time
        self.counts[arrow.peer, arrow.name] += 1
        self.findings += len(arrow.findings)

    @property
    def text(self) -> str:
        """`312 frames folded: 310 transfer by the client, 2 flow by the server (packets 18 to 640)`."""
        parts = []
        for peer in (CLIENT, SERVER):
            names = [f"{number} {name}" for (who, name), number in self.counts.most_common() if who == peer]
            if names:
                parts.append(f"{', '.join(names)} by the {peer}")
        number = self.counts.total()
        where = f"packets {self.packet} to {self.last_packet}"
        found = f", {count(self.findings, 'finding')}" if self.findings else ""
        return f"{count(number, 'frame')} folded: {'; '.join(parts)} ({where}{found})"


class Silence:
    """Nobody sends for this long. nanoseconds: how long. packet: that ends it."""

    def __init__(self, nanoseconds: int, packet: int) -> None:
        self.nanoseconds = nanoseconds
        self.packet = packet

    @property
    def text(self) -> str:
        """`2.0 s later`."""
        return f"{self.nanoseconds / 1e9:.1f} s later"


class Remark:
    """A sentence. packet: where it belongs, 0 for the whole connection. seconds: for how long it holds, -1 if
    time does not matter. time (ns since 1970): of the packet, -1 if no frame of the ladder begins there.
    """

    def __init__(self, text: str, packet: int, seconds: float = -1) -> None:
        self.text = text
        self.packet = packet
        self.seconds = seconds
        self.time = -1

    def date(self, start: int) -> None:
        """Begin the sentence with when it holds. start: the time (ns) of the first row of the ladder."""
        if self.time >= 0 and self.seconds > 0:
            self.text = f"From {offset_text(self.time - start)} s on, for {self.seconds:.3f} s: {self.text}"


Row = Arrow | Fold | Silence | Remark


class Ladder:
    """One connection. rows: in the order of the packets. folded: frames that are in no row but a fold.

    start: the time (ns since 1970) of the first row.
    """

    def __init__(self, connection: Connection, rows: list[Row]) -> None:
        self.connection = connection
        self.rows = rows
        times = [row.time for row in rows if isinstance(row, (Arrow, Fold))]
        self.start = min(times, default=0)
        self.folded = sum(row.counts.total() for row in rows if isinstance(row, Fold))

    @property
    def arrows(self) -> list[Arrow]:
        """The rows that are arrows."""
        return [row for row in self.rows if isinstance(row, Arrow)]

    @property
    def channels(self) -> bool:
        """Whether more than one channel is used."""
        return len({arrow.channel for arrow in self.arrows if arrow.channel >= 0}) > 1


def offset_text(nanoseconds: int) -> str:
    """`+0.001250`: seconds since the first frame that is drawn."""
    sign = "-" if nanoseconds < 0 else "+"
    whole, rest = divmod(abs(nanoseconds) // 1000, 1_000_000)
    return f"{sign}{whole}.{rest:06d}"


def _place(finding: Finding) -> _Place:
    """Where the frame of a finding stands."""
    return finding.peer, int(finding.packet), int(finding.offset), finding.frame


class LadderBuilder:
    """Takes the frames of one connection in the order of the analysis; gives the ladder.

    findings, remarks: all that are to be drawn. folds: whether frames are folded. wanted: packets that are
    not folded. most: arrows of a ladder with folds; further frames are folded, whatever is found in them.
    fields: whether arrows have the fields of their frames.
    """

    def __init__(
        self,
        connection: Connection,
        findings: Iterable[Finding] = (),
        *,
        remarks: Iterable[Remark] = (),
        folds: bool = False,
        wanted: Set[int] = frozenset(),
        most: int = MAX_DRAWN_ROWS,
        fields: bool = False,
    ) -> None:
        self._connection = connection
        self._found: dict[_Place, list[Finding]] = {}
        for finding in findings:
            self._found.setdefault(_place(finding), []).append(finding)
        # Places of findings that a frame has, and the arrow that has them because the frame ends there.
        self._met: set[_Place] = set()
        self._ended: dict[_Place, Arrow] = {}
        self._remarks = list(remarks)
        self._undated: dict[int, list[Remark]] = {}
        for remark in self._remarks:
            self._undated.setdefault(remark.packet, []).append(remark)
        self._folds = folds
        self._wanted = wanted
        self._most = most
        self._fields = fields
        self._drawn = 0
        self._rows: list[Row] = []
        # Frames that will be folded unless one of interest comes, and how many to draw behind the last one.
        self._waiting: deque[Arrow] = deque()
        self._fold: Fold | None = None
        self._times: Counter[tuple[str, str]] = Counter()
        self._rules: Counter[tuple[str, str]] = Counter()
        self._behind = 0

    def add(self, record: FrameRecord, link: Link | None, names: LinkNames, read: Read | None = None) -> None:
        """The next frame. names: has been asked for the link of every record so far. read: see `Arrow`."""
        arrow = self._arrow(record, link, names)
        if read is not None:
            arrow.read = read
        for remark in self._undated.pop(arrow.packet, ()):
            remark.time = arrow.time
        if not self._folds:
            self._rows.append(arrow)
            return
        key = (arrow.peer, arrow.name)
        self._times[key] += 1
        interesting = (
            self._times[key] <= _FIRST
            or self._new(arrow.findings)
            or arrow.packet in self._wanted
            or arrow.kind == "skipped"
            or FORMS.of(record.frame).reports_error(record.frame)
        )
        if self._drawn >= self._most:
            self._waiting.append(arrow)
            while self._waiting:
                self._put_aside(self._waiting.popleft())
        elif interesting:
            self._flush()
            self._draw(arrow)
            self._behind = _NEAR
        elif self._behind:
            self._behind -= 1
            self._draw(arrow)
        else:
            self._waiting.append(arrow)
            if len(self._waiting) > _NEAR + _WORTH or self._fold is not None:
                while len(self._waiting) > _NEAR:
                    self._put_aside(self._waiting.popleft())

    def _new(self, findings: list[Finding]) -> bool:
        """Whether one of these findings is among the first ones of its rule and peer."""
        for finding in findings:
            self._rules[finding.peer, finding.rule] += 1
        return any(self._rules[finding.peer, finding.rule] <= _SAME for finding in findings)

    def _draw(self, arrow: Arrow) -> None:
        self._drawn += 1
        self._rows.append(arrow)

    def _put_aside(self, arrow: Arrow) -> None:
        """Count a frame that is not drawn."""
        if self._fold is None:
            self._fold = Fold(())
            self._rows.append(self._fold)
        self._fold.add(arrow)

    def _flush(self) -> None:
        """Draw the frames that wait."""
        while self._waiting:
            self._draw(self._waiting.popleft())
        self._fold = None

    def _arrow(self, record: FrameRecord, link: Link | None, names: LinkNames) -> Arrow:
        """A frame, and what was found in it."""
        frame = record.frame
        arrow = Arrow(record.peer, int(record.packet), int(record.time), frame.name, frame.kind)
        arrow.channel = int(frame.channel)
        arrow.offset = int(frame.offset)
        arrow.behind = int(frame.offset + frame.size)
        arrow.acknowledged = int(record.acknowledged)
        arrow.link = "" if link is None else printable(link.name)
        guarded, _, vague = guard(record, link, names, False)
        renderer = text_renderer(frame)
        arrow.says = renderer.line(frame, link, record.message, vague)
        if self._fields:
            arrow.fields = renderer.fields(frame, guarded, 1)
        place = (arrow.peer, arrow.packet, arrow.offset, arrow.name)
        # A rule that learns of a fault later knows of the frame where it ends, and not where it begins.
        end = (arrow.peer, arrow.packet, arrow.behind, arrow.name)
        if place in self._found:
            before = self._ended.pop(place, None)
            if before is not None:
                before.findings = [one for one in before.findings if _place(one) != place]
            arrow.findings = list(self._found[place])
            self._met.add(place)
        if end in self._found and end not in self._met:
            arrow.findings += self._found[end]
            self._met.add(end)
            self._ended[end] = arrow
        return arrow

    def ladder(self, whole: bool = True) -> Ladder:
        """All frames have come. whole: what is found at no frame has an arrow, else it is left out."""
        self._flush()
        absent: dict[tuple[str, int, str], Arrow] = {}
        for place, findings in self._found.items():
            if whole and place not in self._met:
                _, packet, _, name = place
                peer, by = _end_of(findings[0])
                arrow = absent.setdefault(
                    (peer, packet, name), Arrow(peer, packet, int(findings[0].time), printable(name), "end")
                )
                arrow.says = arrow.says or by
                arrow.findings = [*arrow.findings, *findings]
        # Frames come as they are known: what was skipped is known only later. An end follows the frames of
        # its packet.
        ends = sorted(absent.values(), key=lambda arrow: arrow.packet)
        remarks = self._remarks if whole else []
        rows = sorted([*self._rows, *ends, *remarks], key=lambda row: row.packet)
        arrows = _with_silences(rows)
        _land([row for row in arrows if isinstance(row, Arrow)], arrows)
        ladder = Ladder(self._connection, arrows)
        for remark in remarks:
            remark.date(ladder.start)
        return ladder


def _end_of(finding: Finding) -> tuple[str, Line]:
    """Who sent what shows that something is missing, and what that was, as far as it is known.

    That is the peer at fault, unless the other peer gave up waiting: then its own FIN or RST shows it.
    """
    reaction = finding.reaction
    if reaction.frame in (FIN, RST) and reaction.packet == finding.packet:
        return SERVER if finding.peer == CLIENT else CLIENT, [("", f"by {reaction.frame}")]
    return finding.peer, []


def _with_silences(rows: list[Row]) -> list[Row]:
    """The rows, and the silences between frames and before the ends of streams."""
    shown: list[Row] = []
    before = -1
    for row in rows:
        if not isinstance(row, (Arrow, Fold)):
            shown.append(row)
            continue
        if before >= 0 and row.time - before >= _SILENCE:
            shown.append(Silence(row.time - before, row.packet))
        before = row.last_time if isinstance(row, Fold) else row.time
        shown.append(row)
    return shown


def _land(arrows: list[Arrow], rows: list[Row]) -> None:
    """Set where each arrow is known to be still in flight."""
    at = {id(row): number for number, row in enumerate(rows)}
    flying: dict[str, deque[Arrow]] = {CLIENT: deque(), SERVER: deque()}
    # The row of the newest frame of each peer.
    newest = {CLIENT: -1, SERVER: -1}
    for arrow in arrows:
        row = arrow.lands = at[id(arrow)]
        if arrow.kind == "end":
            continue
        others = flying[SERVER if arrow.peer == CLIENT else CLIENT]
        while others and 0 <= others[0].behind <= arrow.acknowledged:
            other = others.popleft()
            other.lands = max(other.lands, newest[arrow.peer])
        newest[arrow.peer] = row
        flying[arrow.peer].append(arrow)


def ladders(records: Iterable[FrameRecord], findings: Iterable[Finding]) -> list[Ladder]:
    """Ladders without folds, one of each connection, for frames in the order of the analysis."""
    found: dict[Connection, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.connection, []).append(finding)
    builders: dict[Connection, LadderBuilder] = {}
    names: dict[Connection, LinkNames] = {}
    for record in records:
        connection = record.connection
        builder = builders.get(connection)
        if builder is None:
            builder = builders[connection] = LadderBuilder(connection, found.get(connection, ()))
            names[connection] = LinkNames()
        known = names[connection]
        builder.add(record, known.of(record), known)
    return [builder.ladder() for builder in builders.values()]
