"""Control links, the transactions declared on them, and the requests sent on them.

Each fact has the offset after the frame that states it, in the stream of the frame's sender: see
`tracking.amqp10.transactions`, which keeps the facts.

Sources: transactions.xml, "coordination", "txn-declare", "txn-discharge".
"""

from typing import Any

from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.object_ids import ObjectIds
from dissectors.wire import i64

__all__ = ["Control", "ControlRequest", "Transaction"]


class Control:
    """A control link.

    controller: the peer that attached it as sender. channel, session: of that peer, on which and the number
    of the session in which it did. offers_rejected: its source lets the outcome be rejected. answer_end: of
    the resource's attach; capabilities: the coordinator's in that, None if it says none. left, dropped: the
    ends of the controller's and of the resource's detach (or session end); closed: the first of them did.
    settled_end: of the last transfer that came settled, in `settled_packet`, till a later one is answered.
    """

    def __init__(self, controller: str, channel: int, session: int, name: str, packet: i64) -> None:
        self.controller: str = controller
        self.channel: int = channel
        self.session: int = session
        self.name: str = name
        self.packet: i64 = packet
        self.offers_rejected: bool = True
        self.answer_end: i64 = UNKNOWN
        self.capabilities: tuple[str, ...] | None = None
        self.left: i64 = UNKNOWN
        self.dropped: i64 = UNKNOWN
        self.closed: bool = False
        self.settled_end: i64 = UNKNOWN
        self.settled_packet: i64 = 0

    def over(self) -> bool:
        """Whether either end has detached it."""
        return self.left != UNKNOWN or self.dropped != UNKNOWN

    def leave(self, end: i64, closed: bool) -> None:
        """The controller detaches it."""
        if self.left == UNKNOWN:
            self.left = end
            if self.dropped == UNKNOWN:
                self.closed = closed

    def drop(self, end: i64, closed: bool) -> None:
        """The resource detaches it."""
        if self.dropped == UNKNOWN:
            self.dropped = end
            if self.left == UNKNOWN:
                self.closed = closed

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.controller, self.channel, self.session, self.name, int(self.packet)),
            (self.offers_rejected, int(self.answer_end), self.capabilities),
            (int(self.left), int(self.dropped), self.closed),
            (int(self.settled_end), int(self.settled_packet)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Control":
        """The object of what `dump` returned."""
        about, answer, ends, settled = state
        control = Control(about[0], about[1], about[2], about[3], about[4])
        control.offers_rejected, control.answer_end, control.capabilities = answer
        control.left, control.dropped, control.closed = ends
        control.settled_end, control.settled_packet = settled
        return control


class Transaction:
    """One transaction, from the frame that declared it.

    declared_end: of the resource's disposition with its id. discharge_end, fail: of the controller's
    discharge, and what that asks for. answered_end: of the resource's answer to it; done: that said so.
    answered_time: when (ns) the controller first spoke after that could be known.
    partial, mixed: packets in which the controller discharged it while a delivery under it was
    incomplete, or gave a delivery under it an outcome under another; 0 if it did not. elsewhere: there was
    work under it on another session than the control link's.
    """

    def __init__(self, control: Control, txn_id: bytes, declared_end: i64, packet: i64) -> None:
        self.control: Control = control
        self.elsewhere: bool = False
        self.txn_id: bytes = txn_id
        self.declared_end: i64 = declared_end
        self.declared_packet: i64 = packet
        self.discharge_end: i64 = UNKNOWN
        self.discharge_packet: i64 = 0
        self.fail: bool = False
        self.answered_end: i64 = UNKNOWN
        self.answered_time: i64 = 0
        self.done: bool = False
        self.partial: i64 = 0
        self.mixed: i64 = 0

    def dump(self, controls: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, its control link by number."""
        return (
            controls.number(self.control),
            (self.txn_id, int(self.declared_end), int(self.declared_packet)),
            (int(self.discharge_end), int(self.discharge_packet), self.fail),
            (int(self.answered_end), int(self.answered_time), self.done),
            (int(self.partial), int(self.mixed), self.elsewhere),
        )

    @staticmethod
    def load(state: tuple[Any, ...], controls: list[Control]) -> "Transaction":
        """The object of what `dump` returned, of one of these control links."""
        control, declared, discharge, answered, faults = state
        transaction = Transaction(controls[control], declared[0], declared[1], declared[2])
        transaction.discharge_end, transaction.discharge_packet, transaction.fail = discharge
        transaction.answered_end, transaction.answered_time, transaction.done = answered
        transaction.partial, transaction.mixed, transaction.elsewhere = faults
        return transaction


class ControlRequest:
    """A declare or a discharge on a control link.

    kind: `declare`, `discharge`, or "" if it is neither or was not seen whole. end: of its last transfer, in
    `packet`. transaction: that is discharged, None if there is none of that id. answered: the resource has
    stated an outcome.
    """

    def __init__(
        self, control: Control, end: i64, packet: i64, kind: str, transaction: Transaction | None
    ) -> None:
        self.control: Control = control
        self.end: i64 = end
        self.packet: i64 = packet
        self.kind: str = kind
        self.transaction: Transaction | None = transaction
        self.answered: bool = False

    def dump(self, controls: ObjectIds, transactions: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, its control link and its transaction by number."""
        control = controls.number(self.control)
        transaction = None if self.transaction is None else transactions.number(self.transaction)
        return (control, int(self.end), int(self.packet), self.kind, transaction, self.answered)

    @staticmethod
    def load(
        state: tuple[Any, ...], controls: list[Control], transactions: list[Transaction]
    ) -> "ControlRequest":
        """The object of what `dump` returned, of one of these control links."""
        control, end, packet, kind, transaction, answered = state
        discharged = None if transaction is None else transactions[transaction]
        request = ControlRequest(controls[control], end, packet, kind, discharged)
        request.answered = answered
        return request
