"""The transactions of a connection that speaks the April-2011 draft (sections 5.1 and 5.2).

One peer, the controller, attaches a link to a coordinator at the other peer, the resource. The controller
chooses a txn-id, sends it in the transfer-state of a declare message, and ends the transaction with a
discharge message. In between transfer-states and the options of flows name it.

txn-ids belong to containers, not to connections. So a txn-id that this connection has not declared may have
been declared on another one.
"""

from typing import Any, Final

from amqpscope.limits import MAX_STATED
from dissectors.amqp10_draft2011 import performatives as draft

__all__ = ["NOBODY", "Transactions", "named_by"]

NOBODY: Final = -1
"""No direction."""

Place = tuple[int, int, int]
"""A direction, the number of a session, and a handle or a transfer-id."""


class Transactions:
    """What the control links of a connection have declared and discharged, and what was done in between.

    controller: the direction in which the controller sends, `NOBODY` without a control link.
    """

    def __init__(self) -> None:
        self.controller: int = NOBODY
        # The control links.
        self.controls: set[Place] = set()
        # What the coordinator says that it can do; None until it says something.
        self.capabilities: frozenset[str] | None = None
        # The transactions that are declared and not discharged, each with the session of its control link.
        self.live: dict[bytes, int] = {}
        self.discharged: set[bytes] = set()
        # A declare or discharge has no txn-id, or was not read: what is live is not known.
        self.unsure: bool = False
        # Messages to the coordinator by their transfer-ids: declare or discharge.
        self.requests: dict[Place, str] = {}
        # The txn-id of each message that was sent, by its transfer-ids; None for none.
        self.work: dict[Place, bytes | None] = {}
        # What the controller asks for in a transaction: the txn-id and the transfer-limit of each link.
        self.asked: dict[Place, tuple[bytes, int]] = {}
        # The txn-id of the deliveries under way, by link.
        self.open: dict[Place, bytes | None] = {}

    def begin(self, place: Place) -> None:
        """The controller attaches a link to a coordinator."""
        if self.controller not in (NOBODY, place[0]) or len(self.controls) >= MAX_STATED:
            self.unsure = True
            return
        self.controller = place[0]
        self.controls.add(place)

    def declare(self, txn_id: bytes | None, session: int) -> None:
        """A declare message names a transaction."""
        if txn_id is None or len(self.live) >= MAX_STATED:
            self.unsure = True
            return
        self.live[txn_id] = session
        self.discharged.discard(txn_id)

    def discharge(self, txn_id: bytes | None) -> None:
        """A discharge message names a transaction."""
        if txn_id is None or len(self.discharged) >= MAX_STATED:
            self.unsure = True
            return
        self.live.pop(txn_id, None)
        self.discharged.add(txn_id)

    def carry(self, link: Place, transfer: Place, state: object, more: bool) -> bytes | None:
        """A transfer is sent; the txn-id of its delivery."""
        txn_id = named_by(state)
        if txn_id is None:
            txn_id = self.open.get(link)
        self.open.pop(link, None)
        if len(self.work) >= MAX_STATED or len(self.open) >= MAX_STATED:
            self.work.clear()
            self.open.clear()
        self.work[transfer] = txn_id
        if more:
            self.open[link] = txn_id
        return txn_id

    def ask(self, link: Place, flow: draft.Flow) -> None:
        """The controller sends a flow for a link on which it receives."""
        options = flow.options
        txn_id = None if options is None else options.get("txn-id")
        before = self.asked.pop(link, None)
        if not isinstance(txn_id, bytes):
            if before is None:
                return
            txn_id = before[0]
        count, credit = flow.transfer_count, flow.link_credit
        if count is not None and credit and not flow.drain and len(self.asked) < MAX_STATED:
            self.asked[link] = (txn_id, count + credit)

    def request(self, transfer: Place, name: str) -> None:
        """A message to the coordinator is a declare or a discharge."""
        if len(self.requests) >= MAX_STATED:
            self.requests.clear()
        self.requests[transfer] = name

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        capabilities = None if self.capabilities is None else tuple(sorted(self.capabilities))
        return (
            (self.controller, tuple(sorted(self.controls)), capabilities, self.unsure),
            (tuple(self.live.items()), tuple(sorted(self.discharged))),
            (tuple(self.requests.items()), tuple(self.work.items()), tuple(self.open.items())),
            tuple(self.asked.items()),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Transactions":
        """The object of what `dump` returned."""
        known = Transactions()
        about, transactions, frames, asked = state
        known.asked = dict(asked)
        known.controller, controls, capabilities, known.unsure = about
        known.controls = set(controls)
        known.capabilities = None if capabilities is None else frozenset(capabilities)
        known.live, known.discharged = dict(transactions[0]), set(transactions[1])
        known.requests, known.work, known.open = dict(frames[0]), dict(frames[1]), dict(frames[2])
        return known


def named_by(state: object) -> bytes | None:
    """The txn-id in a transfer-state; None for none, and for one that is not binary."""
    if isinstance(state, draft.TransferState) and isinstance(state.txn_id, bytes):
        return state.txn_id
    return None
