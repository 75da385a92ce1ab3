"""Follows the transactions of a connection, and calls the rules about them."""

from typing import Final

from amqpscope.rules.amqp10_draft2011 import transactions as rules
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10_draft2011.transactions import Place, Transactions, named_by
from amqpscope.tracking.serial import nearest
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.amqp10_draft2011.message import DraftMessage

__all__ = ["follow"]

_MOST: Final = 256
"""Transfers that one disposition is looked at for."""

_CAPABILITIES: Final = frozenset(
    [
        *("amqp:local-transactions", "amqp:distributed-transactions", "amqp:promotable-transactions"),
        *("amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn", "amqp:multi-conns-per-txn"),
    ]
)
"""The capabilities of section 5.2.4."""

_DATA: Final = 3
_AMQP_DATA: Final = 4
_ERRORS: Final = "amqp:transaction:"


def follow(case: CaseDraft2011, known: Transactions, session: SessionEnd, sent: object) -> None:
    """Judge a frame of a session, and take what it says about transactions."""
    direction = int(case.sent.direction)
    number = int(session.number)
    if isinstance(sent, draft.Attach):
        _attach(case, known, (direction, number), sent)
    elif isinstance(sent, draft.Transfer):
        _transfer(case, known, direction, number, sent)
    elif isinstance(sent, draft.Disposition):
        _disposition(case, known, session, sent)
    elif isinstance(sent, draft.Flow) and known.controller == direction:
        txn_id = None if sent.options is None else sent.options.get("txn-id")
        if isinstance(txn_id, bytes):
            _work(case, known, direction, number, txn_id)
        link = None if sent.handle is None else session.handles.get(sent.handle)
        if sent.handle is not None and link is not None and not link.sender:
            known.ask((direction, number, sent.handle), sent)


def _attach(case: CaseDraft2011, known: Transactions, place: tuple[int, int], sent: draft.Attach) -> None:
    target = sent.target
    if not isinstance(target, draft.Coordinator):
        return
    for capability in target.capabilities or ():
        if capability.startswith("amqp:") and capability not in _CAPABILITIES:
            rules.capability_that_is_none(case, str(capability)[:64])
            break
    if sent.role is False and sent.handle is not None:
        known.begin((*place, sent.handle))
    elif sent.role is True and target.capabilities:
        known.capabilities = frozenset(str(one) for one in target.capabilities)


def _transfer(
    case: CaseDraft2011, known: Transactions, direction: int, session: int, sent: draft.Transfer
) -> None:
    if known.controller != direction or sent.handle is None or sent.transfer_id is None:
        return
    link: Place = (direction, session, sent.handle)
    transfer: Place = (direction, session, sent.transfer_id)
    more = bool(sent.more) and not sent.aborted
    if link not in known.controls:
        named = named_by(sent.state)
        known.carry(link, transfer, sent.state, more)
        if named is not None:
            _work(case, known, direction, session, named)
        return
    txn_id = known.carry(link, transfer, sent.state, more)
    if more or sent.aborted:
        return
    message = DraftMessage.of(case.sent.message)
    if message is None or not message.complete or message.message_format != 0:
        known.unsure = True
        return
    _request(case, known, session, transfer, txn_id, message)


def _request(
    case: CaseDraft2011,
    known: Transactions,
    session: int,
    transfer: Place,
    txn_id: bytes | None,
    message: DraftMessage,
) -> None:
    """A message to the coordinator."""
    name, place, values, bodies = "", -1, 0, 0
    for section, value in zip(message.sections, message.values(), strict=True):
        if section.code < _DATA:
            continue
        bodies += 1
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, (draft.Declare, draft.Discharge)):
                name = "declare" if isinstance(item, draft.Declare) else "discharge"
                place, values = int(section.code), len(items)
    if name == "":
        known.unsure = True
        return
    known.request(transfer, name)
    if bodies > 1:
        rules.request_in_another_form(
            case,
            name,
            f"in a message with {bodies} sections of application data, not in a single amqp-data section",
        )
    elif place != _AMQP_DATA:
        rules.request_in_another_form(
            case, name, f"in a section with section-code {place}, not in an amqp-data section"
        )
    elif values > 1:
        rules.request_in_another_form(case, name, f"in a section with {values} values instead of one value")
    sure = not known.unsure and case.me.whole and case.peer.whole
    if name == "declare":
        others = sum(1 for one in known.live.values() if one == session)
        if sure and others and known.capabilities and "amqp:multi-txns-per-ssn" not in known.capabilities:
            rules.several_transactions_on_a_session(case, others + 1)
        known.declare(txn_id, session)
        return
    if sure and txn_id is not None and txn_id not in known.live:
        rules.discharge_of_no_transaction(case, txn_id, _why(known, txn_id))
    elif sure and txn_id is not None:
        _credit(case, known, txn_id)
    known.discharge(txn_id)


def _credit(case: CaseDraft2011, known: Transactions, txn_id: bytes) -> None:
    """The link-credit that is left when a transaction is discharged."""
    sessions = {int(session.number): session for session in case.me.sessions.values()}
    for (direction, number, handle), (asked, limit) in known.asked.items():
        session = sessions.get(number)
        if asked != txn_id or direction != case.sent.direction or session is None:
            continue
        link = session.handles.get(handle)
        if link is None or not link.whole:
            continue
        left = int(nearest(limit & 0xFFFFFFFF, link.receipt.count)) - int(link.receipt.count)
        if left > 0:
            rules.discharged_with_credit_left(case, link.name, left)
            return


def _work(case: CaseDraft2011, known: Transactions, direction: int, session: int, txn_id: bytes) -> None:
    """The controller names a transaction for its work."""
    if known.controller != direction or known.unsure or not case.me.whole or not case.peer.whole:
        return
    if txn_id not in known.live:
        rules.work_in_no_transaction(case, txn_id, _why(known, txn_id))
    elif known.live[txn_id] != session and known.capabilities:
        if not known.capabilities & {"amqp:multi-ssns-per-txn", "amqp:multi-conns-per-txn"}:
            rules.work_on_another_session(case, txn_id)


def _why(known: Transactions, txn_id: bytes) -> str:
    return "is already discharged" if txn_id in known.discharged else "was not declared"


def _disposition(
    case: CaseDraft2011, known: Transactions, session: SessionEnd, sent: draft.Disposition
) -> None:
    direction = int(case.sent.direction)
    named = named_by(sent.state)
    if known.controller == direction:
        if named is not None:
            _work(case, known, direction, int(session.number), named)
        return
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if not sent.role or sent.first is None or theirs is None or not session.whole or not theirs.whole:
        return
    first = sent.first
    last = first if sent.last is None else int(nearest(sent.last, first))
    state = sent.state
    outcome = state.outcome if isinstance(state, draft.TransferState) else None
    for at in range(first, min(last, first + _MOST) + 1):
        place = (1 - direction, int(theirs.number), at & 0xFFFFFFFF)
        name = known.requests.get(place)
        if name is not None:
            if outcome is not None and not isinstance(outcome, draft.Accepted):
                # Whether the transaction of a failed request is live is not known.
                known.unsure = True
            what = _refusal(outcome)
            if what:
                rules.request_not_rejected(case, name, what)
                return
        elif named is not None and place in known.work and known.work[place] != named:
            rules.another_transaction_named(case, named, known.work[place])
            return


def _refusal(outcome: object) -> str:
    """What is wrong with an outcome as the answer to a request that fails; "" if nothing is."""
    if isinstance(outcome, (draft.Released, draft.Modified)):
        return f"the outcome `{outcome.definition().name}`, not with the outcome `rejected`"
    if isinstance(outcome, draft.Rejected):
        error = outcome.error
        condition = "" if error is None or error.condition is None else str(error.condition)
        if not condition.startswith(_ERRORS):
            error_text = (
                f" and the error {condition[:64]}, which is not a transaction error"
                if condition
                else ", but without an error"
            )
            return f"the outcome `rejected`{error_text}"
    return ""
