"""What is wrong in a capture, in at most fifteen lines for somebody who knows nothing of it yet.

    traffic.pcap: 1 trouble; 25 frames on 1 connection
    server 10.20.6.20:5672 rabbit@mq-2 (RabbitMQ 4.1.2), AMQP 1.0
      1 connection by shop-5 (AMQP 1.0 Client 0.5.0)
    1. the client has to act: link jobs: the credit of 5 is used up ... [diag/credit-starved]
       The client can: As the receiver, renew the credit while messages are processed. ...
    next: amqpscope why traffic.pcap 32

The order is: violations that the other peer reacted to, diagnoses, ends with an error or without a close,
then the other violations. What is the same on many connections is one trouble, and so are all violations by
one peer of a connection. Each connection's worst trouble comes before a second trouble of any connection.
"""

import re
from collections import Counter
from typing import Final, NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.registry import kind_of
from amqpscope.input.capture import Capture
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection
from amqpscope.protocols import is_amqp, label
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.diagnosis_text import diagnosis_line, is_trouble
from amqpscope.report.line import Line
from amqpscope.report.notes import note_lines
from amqpscope.report.outcome import nothing_to
from amqpscope.report.painter import Painter, shortened
from amqpscope.report.printable import cut, printable
from amqpscope.report.summary import error_words
from amqpscope.report.summary_table import ConnectionFindings, SummaryRow
from amqpscope.report.verdict import short_message
from amqpscope.report.who import peer_line, short_name, who
from amqpscope.rules.explanation import how_to_mend
from amqpscope.rules.peer_error import FIN, RST, is_objection
from amqpscope.rules.profiles import weight
from dissectors.wording import count

__all__ = ["MOST_LINES", "Triage", "TroubleSentence"]

MOST_LINES: Final = 15
"""Lines of the output."""

_TROUBLES: Final = 5
"""Troubles that are listed."""

_HANG: Final = 3
"""Columns before the continuation of a trouble."""

_ADVISED: Final = 2
"""Troubles that are shown with advice, if there is room."""

_SERVERS: Final = 1
"""Servers that are named."""

_NAMES: Final = 2
"""Names of a server that are shown."""

_CLIENTS: Final = 3
"""Clients of a server that are named."""

_NOTES: Final = 2
"""Notes about the capture that are shown."""

_FACTS: Final = 3
"""Diagnoses that ask nobody to act: so many are shown where nothing is wrong."""

_PACKETS: Final = 3
"""Packets of further violations that are named."""

_LONGEST: Final = 300
"""Characters of a sentence that are shown."""

_HINT: Final = (
    "If there is trouble all the same, capture it from the beginning of its connection, and go on for half a "
    "minute after the trouble began."
)

_MOST_SERVERS: Final = 1000
"""Servers that are counted."""

_MOST_KINDS: Final = 1000
"""Kinds of troubles up to which ends with different texts are different troubles."""

_KIND: Final = 60
"""Characters of a text that are compared."""

_VARIES: Final = re.compile("['\"0-9]")
"""Where the part of a text begins that may vary from one connection to the next: a name, or a number."""

# The order of troubles.
_ANSWERED, _ANSWERED_WARNING, _REFUSED, _DIAGNOSED, _ENDED, _ERROR, _PERHAPS, _WARNING = range(8)

_MINOR: Final = (_PERHAPS, _WARNING)
"""Troubles that come last, even where they are the worst of their connection."""


class TroubleSentence(NamedTuple):
    """A trouble in words. advice: what to do, "" if nothing is known. packet: where it began, 0 for none."""

    text: str
    advice: str
    packet: int


class _Trouble(NamedTuple):
    """A thing that is wrong. rank: the lower, the worse; of one rank the longest is the worst.

    where: its connection and client, "" if it is on several. line: what it is. advice: what to do, "" if
    nothing is known. why: the arguments of `amqpscope why` before and behind the file, None if the command
    `summary` shows more. fault: of a violation, who breaks a rule or may break one. others: the packets of
    further violations of this kind on the connection.
    """

    rank: int
    seconds: float
    where: str
    packet: int
    line: Line
    advice: str
    why: tuple[str, str] | None
    fault: str = ""
    others: tuple[int, ...] = ()


class _Server:
    """What listens at an address: how many connections each of its clients has, and what it calls itself.

    names: on how many connections it gives each name. Brokers behind one address may have different names.
    """

    def __init__(self, address: tuple[str, str], protocol: str) -> None:
        self.clients: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self._address = address
        self._protocol = protocol

    def line(self) -> Line:
        """`server 10.20.6.20:5672 rabbit@mq-2 (RabbitMQ 4.1.2), AMQP 1.0`."""
        names = self.names.most_common(_NAMES)
        text = "".join(f" {name}" for name, _ in names)
        if len(self.names) > 1:
            text = " " + ", ".join(f"{name} on {count(times, 'connection')}" for name, times in names)
            others = len(self.names) - len(names)
            text += f" and {count(others, 'other name')}" if others else ""
        return [self._address, ("", f"{text}, {self._protocol}")]


class Triage:
    """Takes the findings, diagnoses and connections of a capture; gives the lines."""

    def __init__(self, name: str, file: str) -> None:
        """name: of the capture. file: as a command names it, "" if no command can read it again."""
        self._name = name
        self._file = file
        # The worst of each kind, and on how many connections or in how many places there is one.
        self._worst: dict[tuple[str, str], _Trouble] = {}
        self._times: Counter[tuple[str, str]] = Counter()
        # Kinds that are on more than one connection.
        self._spread: set[tuple[str, str]] = set()
        self._servers: dict[tuple[str, int], _Server] = {}
        self._findings: dict[Connection, ConnectionFindings] = {}
        # Open connections on which a peer reacted to a violation.
        self._reacted: set[Connection] = set()
        self._possible = 0
        # Diagnoses that are no trouble: shown where there is no trouble.
        self._facts: list[Diagnosis] = []

    def judge(self, findings: list[Finding]) -> None:
        """The next findings. Those of a connection come before it is over, but for some."""
        for finding in findings:
            level = weight(finding)
            if level == "note":
                continue
            known = self._findings.setdefault(finding.connection, ConnectionFindings())
            known.add(finding)
            answered = is_objection(finding.reaction)
            if not finding.certain and not answered:
                self._possible += 1
                continue
            if answered:
                self._reacted.add(finding.connection)
            if not finding.certain:
                # An error by name says more than a connection that is cut.
                rank = _REFUSED if finding.reaction.condition else _PERHAPS
            elif answered:
                rank = _ANSWERED if level == "error" else _ANSWERED_WARNING
            else:
                rank = _ERROR if level == "error" else _WARNING
            mend = how_to_mend(finding.rule)
            advice = f"To mend it: {mend}" if mend else ""
            packet = int(finding.packet)
            where = _where(finding.connection)
            fault = f"the {finding.peer} {'breaks' if finding.certain else 'may break'}"
            line = _violation(finding)
            trouble = _Trouble(rank, 0, where, packet, line, advice, ("", str(packet)), fault)
            self._add((finding.rule, finding.peer), trouble)

    def over(
        self, analysis: ConnectionAnalysis, known: ConnectionOverview | None, diagnoses: list[Diagnosis]
    ) -> None:
        """A connection is over. known: what its frames said, None if it had none."""
        connection = analysis.connection
        if is_amqp(connection.protocol):
            self._meet(connection)
        troubles = [one for one in diagnoses if is_trouble(one)]
        for one in troubles:
            self._diagnose(one, _where(connection))
        self._facts += [one for one in diagnoses if not is_trouble(one)][: _FACTS - len(self._facts)]
        findings = self._findings.pop(connection, None) or ConnectionFindings()
        reacted = connection in self._reacted
        self._reacted.discard(connection)
        row = SummaryRow(analysis, known, findings, diagnoses)
        if row.ended_badly and known is not None and not troubles and not reacted:
            # A stream that only ends is explained by what was wrong before.
            wrong = bool(findings.counts.counts.get("error"))
            if wrong and not known.errors:
                return
            explained = "" if wrong else "[no rule and no diagnosis explains it]"
            which = ("--end ", f" --connection {connection.stream}")
            words = error_words(row.error, _LONGEST) if row.error is not None else ""
            ended: Line = [("error", row.ended), ("", f": {words} " if words else " ")]
            trouble = _Trouble(_ENDED, 0, _where(connection), 0, [*ended, ("dim", explained)], "", which)
            self._add(self._end_key(row), trouble)

    def finish(self, diagnoses: list[Diagnosis]) -> None:
        """All connections are over. diagnoses: those that only several connections give."""
        for one in diagnoses:
            self._diagnose(one, "")

    def _end_key(self, row: SummaryRow) -> tuple[str, str]:
        """What two ends have in common that are one trouble: condition and method, and the kind of text."""
        how = row.ended.partition(",")[0]
        error = row.error
        if error is None:
            return ("end", how)
        kind = _VARIES.split(error.description or "", maxsplit=1)[0][:_KIND]
        key = ("end", f"{how} {error.cause} {kind}")
        return key if key in self._worst or len(self._worst) < _MOST_KINDS else ("end", how)

    def _diagnose(self, one: Diagnosis, where: str) -> None:
        kind = kind_of(one.code)
        advice = kind.sections().get("Server" if one.whose_move == SERVER else "Client", "")
        who_can = one.whose_move or CLIENT
        trouble = _Trouble(
            _DIAGNOSED,
            one.seconds,
            where,
            one.packet,
            _diagnosed(one),
            "" if advice.endswith("needs no change.") else f"The {who_can} can: {advice}",
            None if not where else ("", str(one.packet)) if one.packet else ("--end ", ""),
        )
        self._add((one.code, one.whose_move), trouble)

    def _add(self, key: tuple[str, str], trouble: _Trouble) -> None:
        self._times[key] += 1
        worst = self._worst.get(key)
        if worst is not None and worst.where != trouble.where:
            self._spread.add(key)
        if worst is None or _order(trouble) < _order(worst):
            self._worst[key] = trouble

    def _meet(self, connection: Connection) -> None:
        """A connection of AMQP: who talks to whom."""
        direction = 1 - max(int(connection.client), 0)
        address, port = connection.end(direction)
        server = self._servers.get((address, port))
        if server is None:
            if len(self._servers) >= _MOST_SERVERS:
                return
            part = peer_line(connection, SERVER)[0]
            server = self._servers[address, port] = _Server(part, label(connection.protocol))
        name = who(connection, SERVER)
        if name and (name in server.names or len(server.names) < _MOST_SERVERS):
            server.names[name] += 1
        client = who(connection, CLIENT) or short_name(connection, CLIENT)
        if client in server.clients or len(server.clients) < _MOST_SERVERS:
            server.clients[client] += 1

    # The lines

    def sentences(self, capture: Capture, most: int) -> list[TroubleSentence]:
        """The worst troubles of a capture that was read to its end, `most` of them, behind a heading."""
        troubles = self._sorted()
        head = "".join(text for _, text in self._head(capture, len(troubles), nothing_to(capture, "read")))
        found = [TroubleSentence(head, "", 0)]
        for key, one in troubles[:most]:
            fault = f"{one.fault} {'some rules' if one.others else 'a rule'}: " if one.fault else ""
            times = self._times[key]
            again = f" ({times - 1} more like this)" if times > 1 else ""
            where = f"{one.where}: " if one.where and capture.spoken > 1 else ""
            text = "".join(text for _, text in one.line).strip()
            found.append(TroubleSentence(f"{where}{fault}{text}{again}", one.advice, one.packet))
        return found

    def text(self, capture: Capture, painter: Painter) -> str:
        """All of it, read to its end, as at most `MOST_LINES` lines."""
        troubles = self._sorted()
        nothing = nothing_to(capture, "read")
        # What there is instead is said on standard error, as by every command.
        head = [(self._head(capture, len(troubles), nothing and "nothing to read"), 2), *self._talk()]
        hint = [([("dim", _HINT)], 2)] if not (troubles or nothing) else []
        facts = [(diagnosis_line(one), _HANG) for one in self._facts if not troubles]
        tail = [*facts, *_notes(capture), *hint, (self._next(capture, troubles[:1], nothing), 2)]
        above = [painter.paint(line, hang) for line, hang in head]
        below = [painter.paint(line, hang) for line, hang in tail if line]
        room = MOST_LINES - _height(above) - _height(below)
        # A line is left for how many others there are.
        items = self._items(troubles, painter, room - 1)
        room -= _height(items)
        more = len(troubles) - len(items)
        if more:
            room -= 1
            check = f": amqpscope check {self._file}" if self._file else ""
            below.insert(0, painter.paint([("dim", f"and {count(more, 'other trouble')}{check}")], -1))
        for index, (_, trouble) in enumerate(troubles[: min(len(items), _ADVISED)]):
            advice = painter.paint([("", f"{' ' * _HANG}{cut(trouble.advice, _LONGEST)}")], _HANG)
            if trouble.advice and _height([advice]) <= room:
                items[index] += f"\n{advice}"
                room -= _height([advice])
        return "\n".join([*above, *items, *below])

    def _items(
        self, troubles: list[tuple[tuple[str, str], _Trouble]], painter: Painter, room: int
    ) -> list[str]:
        """The worst troubles, in so many lines: all but the first cut to two lines if they take more."""
        lines = [
            self._item(number, trouble, self._times[key])
            for number, (key, trouble) in enumerate(troubles[:_TROUBLES], 1)
        ]
        items = [painter.paint(line, _HANG) for line in lines]
        if painter.width is not None and _height(items) > room:
            most = 2 * painter.width - 3 * _HANG
            items[1:] = [painter.paint(shortened(line, most), _HANG) for line in lines[1:]]
        while len(items) > 1 and _height(items) > room:
            items.pop()
        return items

    def _sorted(self) -> list[tuple[tuple[str, str], _Trouble]]:
        """All troubles, the worst first, and each connection's worst before its others."""
        troubles = self._joined()
        met: Counter[str] = Counter()
        orders = []
        for at, (_, trouble) in enumerate(troubles):
            orders.append((trouble.rank in _MINOR, met[trouble.where] if trouble.where else 0, at))
            met[trouble.where] += 1
        return [troubles[at] for _, _, at in sorted(orders)]

    def _joined(self) -> list[tuple[tuple[str, str], _Trouble]]:
        """All troubles by rank, with the violations by one peer of one connection joined into the worst."""
        groups: dict[tuple[str, ...], list[tuple[tuple[str, str], _Trouble]]] = {}
        for key, one in sorted(self._worst.items(), key=lambda one: _order(one[1])):
            # A violation that is on other connections, too, remains a trouble of its own.
            alone = not one.fault or key in self._spread
            groups.setdefault(key if alone else ("", one.where, one.fault), []).append((key, one))
        joined = []
        for (key, worst), *rest in groups.values():
            others = tuple(sorted(other.packet for _, other in rest))
            joined.append((key, worst._replace(others=others)))
        return joined

    def _head(self, capture: Capture, troubles: int, nothing: str) -> Line:
        if nothing and not troubles:
            return [("rule", f"{printable(self._name)}: {nothing}")]
        what = count(troubles, "trouble") if troubles else "nothing wrong was found"
        if not troubles and self._possible:
            what = f"nothing is wrong for certain; {count(self._possible, 'possible violation')}"
        where = f"{count(capture.frames, 'frame')} on {count(capture.spoken, 'connection')}"
        return [("rule", f"{printable(self._name)}: {what}"), ("", f" in {where}")]

    def _talk(self) -> list[tuple[Line, int]]:
        """Who talks to whom: the servers with the most connections, and their clients."""
        servers = sorted(self._servers.values(), key=lambda one: -one.clients.total())
        lines: list[tuple[Line, int]] = []
        for server in servers[:_SERVERS]:
            connections = count(server.clients.total(), "connection")
            names = [name for name, _ in server.clients.most_common(_CLIENTS)]
            others = len(server.clients) - len(names)
            more = f" and {count(others, 'other client')}" if others else ""
            lines.append((server.line(), -1))
            lines.append(([("", f"  {connections} by {', '.join(names)}{more}")], -1))
        if len(servers) > _SERVERS:
            lines.append(([("dim", f"and {count(len(servers) - _SERVERS, 'other server')}")], -1))
        return lines

    def _item(self, number: int, trouble: _Trouble, times: int) -> Line:
        many = self._servers and sum(one.clients.total() for one in self._servers.values()) > 1
        where = f"{trouble.where}: " if many and trouble.where else ""
        again = f"(and {times - 1} more like this) " if times > 1 else ""
        others = trouble.others
        rules = f"{len(others) + 1} rules" if others else "a rule"
        fault = f"{trouble.fault} {rules}: " if trouble.fault else ""
        if others:
            again += f"and {len(others)} more on this connection ({_packets(others)}) "
        line: Line = [("rule", f"{number}. "), ("", where), ("problem", fault)]
        return [*line, *trouble.line[:-1], ("note", again), trouble.line[-1]]

    def _next(self, capture: Capture, first: list[tuple[tuple[str, str], _Trouble]], nothing: str) -> Line:
        """The next command to type; [] if no command can read the capture again."""
        file = self._file
        protocols = capture.protocols
        if not file:
            return []
        command = f"amqpscope summary {file}"
        why = first[0][1].why if first else None
        if why is not None and not nothing:
            before, behind = why
            space = " " if behind and not behind.startswith(" ") else ""
            command = f"amqpscope why {before}{file}{space}{behind}"
        elif nothing and protocols.get("tls"):
            command = (
                f"amqpscope triage --tls-keylog KEYS {file}, with the secrets of the TLS connections "
                "(programs write KEYS if SSLKEYLOGFILE names it)"
            )
        elif nothing:
            command = f"amqpscope summary --all {file}"
        return [("key", "next: "), ("", command)]


def _order(trouble: _Trouble) -> tuple[int, float, int]:
    """The worst first, the longest, then the first in the capture."""
    return trouble.rank, -trouble.seconds, trouble.packet


def _where(connection: Connection) -> str:
    """`connection 62 (till)`."""
    return f"connection {connection.stream} ({short_name(connection, CLIENT)})"


def _diagnosed(one: Diagnosis) -> Line:
    """A diagnosis, with a space before its code that may be broken at."""
    *line, (style, code) = diagnosis_line(one)
    return [*line, ("", " "), (style, code.strip())]


def _violation(finding: Finding) -> Line:
    """A finding: what is the matter, what followed, and its rule."""
    peer = finding.peer
    reaction = finding.reaction
    other = SERVER if peer == CLIENT else CLIENT
    followed = ""
    # A peer may give up on a silence before the late frame comes.
    early = reaction.after < 0
    if reaction.frame in (FIN, RST):
        did = "had given up" if early else "cut the connection"
        followed = f"; the {other} {did} in packet {reaction.packet}"
    elif reaction.condition:
        condition = cut(printable(reaction.condition), 60)
        did = "had given up with" if early else "answered"
        followed = f"; the {other} {did} {reaction.frame} {condition} in packet {reaction.packet}"
    return [
        ("", f"{short_message(finding)} (packet {finding.packet}{followed}) "),
        ("dim", f"[{finding.rule}]"),
    ]


def _packets(packets: tuple[int, ...]) -> str:
    """`packets 1102, 1116`, the first few of them."""
    shown = ", ".join(str(packet) for packet in packets[:_PACKETS])
    more = ", ..." if len(packets) > _PACKETS else ""
    return f"packet{'s' if len(packets) > 1 else ''} {shown}{more}"


def _notes(capture: Capture) -> list[tuple[Line, int]]:
    """What the capture lacks: the less is captured, the less is diagnosed."""
    lines: list[tuple[Line, int]] = []
    lacking = [one for one in note_lines(capture.notes) if one.style == "note"]
    for one in lacking[:_NOTES]:
        lines.append(([("note", cut(f"note: {printable(one.text)}", _LONGEST))], -1))
    return lines


def _height(texts: list[str]) -> int:
    """Lines of painted texts."""
    return sum(text.count("\n") + 1 for text in texts)
