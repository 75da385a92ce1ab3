"""Where a frame names a transaction: in a delivery state, a flow's properties, a message on a control link.

Sources: transactions.xml, "txn-work", "coordination".
"""

from dissectors.amqp10.message import Message
from dissectors.amqp10.performatives import Attach, Flow
from dissectors.amqp10.transactions import Coordinator, Declare, Discharge, TransactionalState

__all__ = ["asked_of", "attaches_control", "named_in", "request_in"]


def asked_of(flow: Flow) -> object:
    """The txn-id in the properties of a flow, None if there is none."""
    properties = flow.properties
    if properties is None or len(properties.pairs) == 0:
        return None
    for key, value in properties.pairs:
        if key == "txn-id":
            return value
    return None


def named_in(state: object) -> bytes | None:
    """The txn-id in a delivery state, None if it is no transactional one, or its id is none."""
    if isinstance(state, TransactionalState) and isinstance(state.txn_id, bytes):
        return state.txn_id
    return None


def request_in(message: Message) -> object:
    """The Declare or Discharge in a message's only amqp-value section, None if there is none."""
    for section in message.sections():
        if section.name == "amqp-value":
            value = section.value
            if isinstance(value, (Declare, Discharge)):
                return value
    return None


def attaches_control(body: object) -> bool:
    """Whether a frame is a controller's attach of a control link."""
    return isinstance(body, Attach) and body.role is False and isinstance(body.target, Coordinator)
