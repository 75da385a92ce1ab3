"""Each end of a connection traced back, one step per cause, to the first cause that the capture shows.

* An end with an error is traced to the finding that it answers, if the error is the correct answer to the
  finding; or to the method that a close of AMQP 0-9-1 names (`report.amqp091.close_causes`); or to the
  refused attach or login; or to a silence that was longer than agreed.
* An end without an error is traced to the error that its sender had just been notified of, if it sent nothing
  in between.
* A FIN or RST without a close is traced to the silence before it, if that was longer than agreed.
* The end of an inner layer is traced to the end of the outer layer.

The cause of that cause is traced in turn. An end without a cause is shown with what came just before it: the
last frame of the other peer about the same thing, or a long silence of both peers. This may be the cause, and
is called `perhaps`. Frames after an end never count. If nothing came just before it, the capture does not
show why. Diagnoses are added to the steps afterwards (`diagnosed`).
"""

from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.reassembly.stalls import WINDOW, Stall
from amqpscope.report.close_causes import CloseCause
from amqpscope.report.findings import expected_condition
from amqpscope.rules.catalogue import rule
from amqpscope.rules.profiles import weight
from amqpscope.why.endings import AT_ONCE, JUST_BEFORE, OWN, CauseStep, Ended, Ending, Following, Thing
from amqpscope.why.frame_ref import Position

__all__ = ["Tracing"]

_MOST_STEPS = 8

_STOLEN = "amqp:link:stolen"

_OF_SILENCE = (*OWN, "", "amqp:resource-limit-exceeded")
"""What a connection is closed with for the other peer's silence."""

_STUCK = 3_000_000_000
"""Nanoseconds in which nothing that a peer writes gets through, from which on it may give up."""

_SECOND = 1_000_000_000


class Tracing:
    """Traces the ends of one connection back."""

    def __init__(
        self,
        following: Following,
        findings: list[Finding],
        causes: list[CloseCause],
    ) -> None:
        self._following = following
        self._findings = findings
        self._named_causes = causes

    def endings(self) -> list[Ending]:
        """The connection, then what ended on it by its own, then what ended with it."""
        things = self._following.things
        own = [thing for thing in things if thing.ended is not None]
        found = [*self._connection(), *(one for thing in own for one in self._own(thing))]
        return found + [self._outer(thing) for thing in things if thing.ended is None]

    def _own(self, thing: Thing) -> list[Ending]:
        """How something was ended: by one peer, or by both at once."""
        found = []
        for ended in (thing.ended, thing.crossed):
            if ended is not None:
                how = (
                    f"{ended.how}, before the {ended.peer} had read the close of the other peer"
                    if ended is thing.crossed
                    else ended.how
                )
                steps = self._causes(ended, thing is self._following.whole)
                found.append(Ending(thing.name, how, ended.peer, ended.mark, ended.condition, steps))
        return found

    def _outer(self, thing: Thing) -> Ending:
        """How something ended that nobody ended itself."""
        around = thing.around
        while around is not None and around.ended is None and around.around is not None:
            around = around.around
        if around is None or around.ended is None:
            whole = self._connection()[0]
            what = "has not ended" if not whole.peer else "still existed when the connection ended"
            return Ending(thing.name, what, whole.peer, None, "", [])
        name = "the connection" if around is self._following.whole else around.name
        what = f"ended with {name}"
        step = CauseStep(f"{name} {around.ended.how}", around.ended.mark, None, 0, True)
        steps = [step, *self._causes(around.ended, around is self._following.whole)]
        return Ending(thing.name, what, around.ended.peer, None, "", steps)

    def _connection(self) -> list[Ending]:
        whole = self._following.whole
        if whole.ended is not None:
            return self._own(whole)
        first = self._following.stream_end
        if first is None:
            return [Ending("connection", "had not ended when the capture ended", "", None, "", [])]
        time, peer, reason, packet = first
        if not self._following.connection.frames:
            how = f"was ended by the {peer}, by {reason.upper()} in packet {packet}"
            return [Ending("connection", how, peer, None, "", [])]
        how = f"was ended by the {peer} without a close, by {reason.upper()} in packet {packet}"
        return [Ending("connection", how, peer, None, "", self._silent(peer, time, packet))]

    def _causes(self, ended: Ended, whole: bool) -> list[CauseStep]:
        """From an end back to the first cause. whole: it is the end of the connection."""
        steps = self._cause(ended, whole)
        reported = ended.reported
        if reported is not None:
            steps.append(
                CauseStep(f"the {reported.peer} had reported an error earlier", reported.mark, None, 0, False)
            )
            if len(steps) < _MOST_STEPS:
                steps += self._causes(reported, reported is self._following.whole.ended)
        return steps or self._before(ended)

    def _before(self, ended: Ended) -> list[CauseStep]:
        """What came just before an end that nothing is a cause of."""
        if ended.condition in OWN and ended.quiet is not None:
            return [_nothing_said(ended.mark.time, ended.quiet)]
        if ended.condition in OWN:
            what = (
                f"an operator's decision, or a shutdown: the error that the {ended.peer} reports does not "
                "accuse the other peer"
            )
            return [CauseStep(what, None, None, 0, False)]
        if ended.condition == _STOLEN:
            return [
                CauseStep("the error says that the link was attached again elsewhere", None, None, 0, False)
            ]
        if ended.reached is not None and ended.condition:
            other = SERVER if ended.peer == CLIENT else CLIENT
            return [
                CauseStep(f"the last frame of the {other} that had arrived", ended.reached, None, 0, False)
            ]
        return []

    def _cause(self, ended: Ended, whole: bool) -> list[CauseStep]:
        """What an end answers."""
        if ended.condition:
            for one in self._named_causes:
                if one.packet == ended.mark.packet:
                    return [
                        CauseStep(
                            one.text, self._named(ended, one), self._at(ended, one), one.cause, one.sure
                        )
                    ]
            found = self._found(ended)
            if found is not None:
                finding, due = found
                what = "an earlier finding"
                if due:
                    what = (
                        "the correct answer to this fault"
                        if _due(finding, ended)
                        else "the usual answer of brokers to this fault"
                    )
                return [CauseStep(what, None, finding, int(finding.packet), due)]
        if ended.cause is not None:
            return [ended.cause]
        if whole and ended.condition and ended.condition in _OF_SILENCE:
            return self._silence(ended.peer, ended.mark.time, ended.mark.packet)
        return []

    def _named(self, ended: Ended, one: CloseCause) -> Position:
        """Where the frame stands that a close names."""
        return Position(1 - ended.mark.direction, one.offset, one.offset, one.cause, 0, "", -1)

    def _at(self, ended: Ended, one: CloseCause) -> Finding | None:
        """The finding at what a close names, if its reply is the one that is due for it."""
        for finding in self._findings:
            if int(finding.packet) == one.cause and finding.peer != ended.peer and _due(finding, ended):
                return finding
        return None

    def _silence(self, peer: str, time: int, packet: int) -> list[CauseStep]:
        """A peer had waited for the other one for longer than was agreed, at `time` (ns), before a packet."""
        name, patience = self._following.patience(peer)
        other = SERVER if peer == CLIENT else CLIENT
        silence, last = self._following.silence(other, time, packet)
        if not patience or silence <= patience:
            return []
        waited = f"the {other} was silent for {silence / _SECOND:.3f} s"
        step = CauseStep(f"{waited}, but {name} allows only {patience / _SECOND:g} s", last, None, 0, True)
        return [step, *self._stalled(other, time - silence, time)]

    def _stalled(self, peer: str, since: int, time: int) -> list[CauseStep]:
        """That a silent peer could not write for half of a time (ns) or more, and why."""
        stalls = self._following.stalls.get(peer)
        if stalls is None or stalls.free(since, time) > (time - since) // 2:
            return []
        within = [one for one in stalls.times if one.since < time and not 0 <= one.until <= since]
        return [self._kept(peer, "", max(within, key=lambda one: one.cause == WINDOW), True)]

    def _stuck(self, peer: str, time: int) -> list[CauseStep]:
        """That a peer could not write when it ended its stream at `time` (ns), and why."""
        stalls = self._following.stalls.get(peer)
        last = None if stalls is None else stalls.last(time)
        if last is None or 0 <= last.until < time - AT_ONCE or time - last.since < _STUCK:
            return []
        return [self._kept(peer, f" for {(time - last.since) / _SECOND:.3f} s", last, False)]

    def _kept(self, peer: str, how_long: str, stall: Stall, sure: bool) -> CauseStep:
        """What kept a peer from writing."""
        other = SERVER if peer == CLIENT else CLIENT
        why = f"TCP did not acknowledge the octets that the {peer} sent again"
        if stall.cause == WINDOW:
            why = f"the TCP window of the {other} left no room"
        packet = int(stall.packet)
        return CauseStep(
            f"the {peer} could not write{how_long}: {why} (from packet {packet})", None, None, packet, sure
        )

    def _found(self, ended: Ended) -> tuple[Finding, bool] | None:
        """The finding that an error answers, and whether it is one that such a fault is answered with."""
        best: tuple[Finding, bool] | None = None
        before = ended.before
        for finding in self._findings:
            if finding.peer == ended.peer or int(finding.packet) > ended.mark.packet:
                continue
            if finding.reaction.packet != ended.mark.packet or weight(finding) == "note":
                continue
            if before is not None and int(finding.packet) < before.packet:
                continue  # that was the answer to it
            due = _due(finding, ended) or _usual(finding, ended)
            if weight(finding) != "error" and not due:
                continue
            if best is None or due > best[1] or (due == best[1] and finding.certain > best[0].certain):
                best = (finding, due)
        return best

    def _silent(self, peer: str, time: int, packet: int) -> list[CauseStep]:
        """What is known of a stream that ends without a close, at `time` (ns) with a packet."""
        following = self._following
        other = SERVER if peer == CLIENT else CLIENT
        steps = self._silence(peer, time, packet)
        reported = following.reported.get(other)
        if (
            reported is not None
            and reported.mark.packet < packet
            and following.may_answer(following.whole, reported, time)
        ):
            steps.append(
                CauseStep(f"the {other} had reported an error earlier", reported.mark, None, 0, False)
            )
            return steps + self._causes(reported, reported is following.whole.ended)
        steps += self._stuck(peer, time)
        if steps:
            return steps
        quiet = following.quiet(following.whole, time, packet)
        if quiet is not None:
            stalled = self._stalled(peer, quiet.time, time) or self._stalled(other, quiet.time, time)
            return [_nothing_said(time, quiet), *stalled]
        silence, last = following.silence(other, time, packet)
        if last is None:
            return [CauseStep(f"the capture shows no earlier frame of the {other}", None, None, 0, False)]
        if silence > JUST_BEFORE:
            what = f"the {other} had sent nothing for {silence / _SECOND:.3f} s"
            return [CauseStep(what, last, None, 0, False), *self._stalled(other, time - silence, time)]
        return [CauseStep(f"the last earlier frame of the {other} in the capture", last, None, 0, False)]


def _nothing_said(time: int, last: Position) -> CauseStep:
    """Nobody had said anything about something for a long time, up to `time` (ns)."""
    return CauseStep(
        f"neither peer sent anything for {(time - last.time) / _SECOND:.3f} s", last, None, 0, False
    )


def _due(finding: Finding, ended: Ended) -> bool:
    """Whether an error is the one that a correct peer answers a fault with."""
    return ended.condition in expected_condition(finding)[0].split()


def _usual(finding: Finding, ended: Ended) -> bool:
    """Whether an error is one that the catalogue knows brokers to answer a fault with."""
    return ended.condition in rule(finding.rule).broker_codes
