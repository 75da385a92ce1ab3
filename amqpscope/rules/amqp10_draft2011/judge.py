"""Judging a connection that speaks the April-2011 draft.

The endpoints and most rules are those of the final specification: they take each frame in the final's terms
(`tracking.amqp10_draft2011.translation`). What only the draft has is judged here, beside the frame as it
was sent.
"""

from typing import Any, Final

from amqpscope.limits import MAX_STATED
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.judge import Judge10
from amqpscope.rules.amqp10_draft2011 import (
    attaches,
    conditions,
    dispositions,
    fragments,
    redelivery,
    resuming,
    transactional,
    transfers,
    types,
)
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.amqp10_draft2011.fields import RULES as _OF_FIELDS  # noqa: F401
from amqpscope.rules.amqp10_draft2011.messages import RULES as _OF_MESSAGES  # noqa: F401
from amqpscope.rules.amqp10_draft2011.sizes import RULES as _OF_SIZES  # noqa: F401
from amqpscope.rules.context import Contexts
from amqpscope.tracking.amqp10.legibility import SESSION
from amqpscope.tracking.amqp10.link import UNKNOWN as NO_NUMBER
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10_draft2011.passing import pass_on
from amqpscope.tracking.amqp10_draft2011.sections import UNKNOWN, Progress, SectionFragment, SentOctets
from amqpscope.tracking.amqp10_draft2011.transactions import NOBODY, Transactions
from amqpscope.tracking.amqp10_draft2011.translation import octets_of, translated
from amqpscope.tracking.correlation_budget import CorrelationBudget
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.amqp10_draft2011.message import DraftMessage
from dissectors.amqp10_draft2011.names import REVISION
from dissectors.amqp10_draft2011.registry import COMPOSITES
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["JudgeDraft2011"]

_MESSAGE_FORMAT: Final = 0
"""MESSAGE-FORMAT, section 4.5.13."""


class JudgeDraft2011(Judge10):
    """Replays one connection as two endpoints and judges each frame before it is applied."""

    def __init__(
        self,
        connection: Connection,
        findings: list[Finding],
        contexts: Contexts | None,
        allowance: CorrelationBudget | None = None,
    ) -> None:
        super().__init__(connection, findings, contexts, allowance)
        # The same as `case`, by its own class.
        self.own: CaseDraft2011 = CaseDraft2011(connection)
        self.case = self.own
        self.made = self.own.findings
        # The transfer-id that follows, by direction and number of the session.
        self.next_ids: dict[tuple[int, int], int] = {}
        # The octets of the deliveries that were sent.
        self.octets: SentOctets = SentOctets()
        # What is declared on control links.
        self.transactions: Transactions = Transactions()
        # Deliveries under way of which some fragments were sent, by direction, channel and handle.
        self.progress: dict[tuple[int, int, int], Progress] = {}

    def take(self, record: FrameRecord) -> None:
        me = self.endpoint(record.direction)
        body = record.frame.body
        if isinstance(body, Composite) and body.definition() not in COMPOSITES:
            # Decoded as one of the final specification: which dialect its sender speaks is not known.
            me.draft = True
        session = me.session_on(record.frame.channel)
        link = None if session is None else _link_of(session, record.frame.body)
        delivery = None if link is None else link.open
        self.own.sent = record
        frame = record.frame
        super().take(record.with_frame(translated(frame, delivery is not None) if frame.dialect else frame))
        if session is not None and link is not None and delivery is not None:
            # A disposition may name all transfers of a message or only one, so it is not followed whether
            # it is settled.
            session.sending().unsettled.pop(int(delivery.number), None)
            link.forget(delivery)
        if session is not None and link is not None and not me.draft:
            pass_on(me, self.own.sent, session, link, delivery)

    def saw(self, record: FrameRecord, found: i64) -> None:
        super().saw(self.own.sent, found)

    def expects(self, dialect: str) -> bool:
        return True

    def judge(self, case: Case10, record: FrameRecord) -> None:
        if any(problem.code == REVISION for problem in record.frame.problems):
            # The peer follows another revision, and so may all that it has sent and will send.
            case.me.draft = True
        super().judge(case, record)
        body = record.frame.body
        if record.frame.missing > 0 or case.me.draft or case.peer.draft:
            return
        own = self.own
        sent = own.sent.frame.body
        conditions.judge_condition(own, sent)
        if isinstance(sent, draft.Attach):
            attaches.judge_attach(own, sent)
        session = case.session
        if session is None:
            return
        if self.transactions.controller != NOBODY or isinstance(sent, draft.Attach):
            transactional.follow(own, self.transactions, session, sent)
        if isinstance(body, Transfer):
            self.judge_transfer(own, session, body)
        elif isinstance(body, Disposition):
            dispositions.judge_disposition(own, session, body)
            if isinstance(sent, draft.Disposition):
                conditions.judge_condition(own, sent.state)
                self.judge_received(own, session, sent)

    def proved(self, case: Case10, problem: Problem) -> None:
        if not types.judge_problem(case, problem):
            super().proved(case, problem)

    def judge_transfer(self, case: CaseDraft2011, session: SessionEnd, body: Transfer) -> None:
        """The draft's own rules about a transfer."""
        sent = case.sent.frame.body
        if not isinstance(sent, draft.Transfer):
            return
        self.judge_transfer_id(case, session, sent.transfer_id)
        link = case.link
        if link is None:
            return
        delivery = link.open
        if delivery is not None and not transfers.judge_continuation(case, link, delivery, body):
            link.whole = False
        self.judge_fragments(case, link, body, sent)
        self.count_octets(case, session, link, sent)
        if case.found == 0:
            self.judge_message(case)
        message = DraftMessage.of(case.sent.message)
        if message is not None and case.found == 0 and not self.partial(case, body):
            redelivery.judge_message(case, session, link, message)

    def count_octets(
        self, case: CaseDraft2011, session: SessionEnd, link: LinkEnd, sent: draft.Transfer
    ) -> None:
        """Count the octets of a delivery that was not resumed and is seen from its first transfer on."""
        delivery = link.open
        if sent.transfer_id is None or sent.resume or not link.whole:
            return
        first = sent.transfer_id
        if delivery is not None:
            if delivery.resumed or delivery.number == NO_NUMBER:
                return
            first = int(raw(delivery.number))
        direction = int(case.sent.direction)
        self.octets.add(direction, int(session.number), sent.transfer_id, first, int(octets_of(sent)))

    def judge_message(self, case: CaseDraft2011) -> None:
        """The message that a transfer completes."""
        message = DraftMessage.of(case.sent.message)
        if message is not None and message.complete and message.message_format == _MESSAGE_FORMAT:
            message.values()
            for problem in message.problems:
                self.proved(case, problem)

    def judge_received(self, case: CaseDraft2011, session: SessionEnd, sent: draft.Disposition) -> None:
        """A receiver's statement of how much it has received, beside what was sent."""
        state = sent.state
        theirs = case.peer.sessions.get(int(session.peer_channel))
        if (
            not sent.role
            or sent.first is None
            or theirs is None
            or not isinstance(state, draft.TransferState)
        ):
            return
        stated = state.bytes_transferred
        if stated is None or state.outcome is not None or case.found > 0 or not session.whole:
            return
        total = self.octets.total(1 - int(case.sent.direction), int(theirs.number), sent.first)
        if total != UNKNOWN:
            resuming.judge_received(case, sent.first, stated, total)

    def judge_transfer_id(self, case: CaseDraft2011, session: SessionEnd, value: int | None) -> None:
        """The transfer-id of a transfer; after a wrong one nothing is counted any more."""
        begin = session.begin
        if value is None or begin is None or begin.next_outgoing_id is None:
            return
        key = (int(case.sent.direction), int(session.number))
        if len(self.next_ids) >= MAX_STATED:
            self.next_ids.clear()
        expected = self.next_ids.get(key)
        if expected is None:
            if session.outgoing.next_id != begin.next_outgoing_id:
                return
            expected = begin.next_outgoing_id
        if transfers.judge_transfer_id(case, session, value, expected):
            self.next_ids[key] = expected + 1
            return
        self.next_ids[key] = int(nearest(value, expected)) + 1
        case.astray = SESSION

    def judge_fragments(
        self, case: CaseDraft2011, link: LinkEnd, body: Transfer, sent: draft.Transfer
    ) -> None:
        """The fragments of a transfer, beside those of the same delivery before."""
        key = (int(case.sent.direction), int(case.sent.frame.channel), int(link.handle))
        progress = self.progress.pop(key, None)
        if link.open is None:
            progress = Progress(body.resume is True)
        if progress is None or not link.whole or case.record.frame.problems:
            return
        plain = body.message_format == _MESSAGE_FORMAT
        carried = [SectionFragment(one) for one in sent.fragments or ()]
        if link.open is None and case.found == 0:
            resuming.judge_resumed(case, link, body, carried)
        for fragment in carried:
            if case.found == 0:
                fragments.judge_fragment(case, progress, fragment, plain)
            progress.take(fragment)
        if not body.more and not body.aborted and case.found == 0:
            fragments.judge_end(case, progress)
        if body.more and not body.aborted and case.found == 0 and len(self.progress) < MAX_STATED:
            self.progress[key] = progress

    def dump(self) -> tuple[object, ...]:
        return (
            super().dump(),
            tuple(self.next_ids.items()),
            tuple((key, progress.dump()) for key, progress in self.progress.items()),
            self.octets.dump(),
            self.transactions.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> "JudgeDraft2011":
        """A judge that goes on where `dump` left off."""
        final, next_ids, progress, octets, transactions = state
        judge = JudgeDraft2011(connection, findings, None)
        judge.restore(final)
        judge.next_ids = dict(next_ids)
        judge.progress = {key: Progress.load(one) for key, one in progress}
        judge.octets = SentOctets.load(octets)
        judge.transactions = Transactions.load(transactions)
        return judge


def _link_of(session: SessionEnd, body: object) -> LinkEnd | None:
    """The link of a transfer, as it was sent."""
    if not isinstance(body, draft.Transfer) or body.handle is None:
        return None
    return session.handles.get(body.handle)
