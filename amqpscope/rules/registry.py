"""Which rules are checked: the tables `RULES` of all files together.

A rule's function stands in the file of its subject, and its id beside it in the `RULES` of that file.
"""

from collections.abc import Iterable
from typing import Final

from amqpscope.rules.amqp091 import acknowledgement as acknowledgement091
from amqpscope.rules.amqp091 import (
    blocked,
    channel,
    closing,
    complaint,
    content_frames,
    flow,
    heartbeat,
    introduction,
    requests,
    set_up_refused,
    tuning,
)
from amqpscope.rules.amqp091 import confirm as confirm091
from amqpscope.rules.amqp091 import consumer as consumer091
from amqpscope.rules.amqp091 import delivery as delivery091
from amqpscope.rules.amqp091 import entities as entities091
from amqpscope.rules.amqp091 import exchange as exchange091
from amqpscope.rules.amqp091 import existence as existence091
from amqpscope.rules.amqp091 import forwarding as forwarding091
from amqpscope.rules.amqp091 import framing as framing091
from amqpscope.rules.amqp091 import negotiation as negotiation091
from amqpscope.rules.amqp091 import opening as opening091
from amqpscope.rules.amqp091 import publishing as publishing091
from amqpscope.rules.amqp091 import queue as queue091
from amqpscope.rules.amqp091 import reaction as reaction091
from amqpscope.rules.amqp091 import refusal as refusal091
from amqpscope.rules.amqp091 import refused as refused091
from amqpscope.rules.amqp091 import sizes as sizes091
from amqpscope.rules.amqp091 import transaction as transaction091
from amqpscope.rules.amqp091 import types as types091
from amqpscope.rules.amqp091 import values as values091
from amqpscope.rules.amqp10 import (
    attachment,
    condition,
    connection,
    content,
    control_link,
    coordinator,
    counting,
    delivery,
    ending,
    filtering,
    framing,
    idle,
    intermediary,
    link,
    message,
    negotiation,
    not_resumed,
    outcome,
    reaction,
    redelivery,
    refusal,
    resumed_receipt,
    resumed_state,
    resuming,
    resumption,
    sasl,
    session,
    settlement,
    terminus,
    tls,
    transaction,
    transactional_work,
    types,
    window,
)

__all__ = ["SUBJECTS", "checked"]

SUBJECTS: Final[dict[str, Iterable[str]]] = {
    "amqp10/attachment": attachment.RULES,
    "amqp10/condition": condition.RULES,
    "amqp10/connection": connection.RULES,
    "amqp10/counting": counting.RULES,
    "amqp10/content": content.RULES,
    "amqp10/control_link": control_link.RULES,
    "amqp10/coordinator": coordinator.RULES,
    "amqp10/delivery": delivery.RULES,
    "amqp10/ending": ending.RULES,
    "amqp10/filtering": filtering.RULES,
    "amqp10/framing": framing.RULES,
    "amqp10/idle": idle.RULES,
    "amqp10/intermediary": intermediary.RULES,
    "amqp10/link": link.RULES,
    "amqp10/message": message.RULES,
    "amqp10/negotiation": negotiation.RULES,
    "amqp10/reaction": reaction.RULES,
    "amqp10/outcome": outcome.RULES,
    "amqp10/redelivery": redelivery.RULES,
    "amqp10/refusal": refusal.RULES,
    "amqp10/resuming": resuming.RULES,
    "amqp10/resumed_state": resumed_state.RULES,
    "amqp10/resumed_receipt": resumed_receipt.RULES,
    "amqp10/not_resumed": not_resumed.RULES,
    "amqp10/resumption": resumption.RULES,
    "amqp10/sasl": sasl.RULES,
    "amqp10/session": session.RULES,
    "amqp10/settlement": settlement.RULES,
    "amqp10/terminus": terminus.RULES,
    "amqp10/tls": tls.RULES,
    "amqp10/transaction": transaction.RULES,
    "amqp10/transactional_work": transactional_work.RULES,
    "amqp10/types": types.RULES,
    "amqp10/window": window.RULES,
    "amqp091/acknowledgement": acknowledgement091.RULES,
    "amqp091/confirm": confirm091.RULES,
    "amqp091/consumer": consumer091.RULES,
    "amqp091/publishing": publishing091.RULES,
    "amqp091/refused": refused091.RULES,
    "amqp091/transaction": transaction091.RULES,
    "amqp091/delivery": delivery091.RULES,
    "amqp091/content_frames": content_frames.RULES,
    "amqp091/channel": channel.RULES,
    "amqp091/exchange": exchange091.RULES,
    "amqp091/queue": queue091.RULES,
    "amqp091/refusal": refusal091.RULES,
    "amqp091/flow": flow.RULES,
    "amqp091/opening": opening091.RULES,
    "amqp091/reaction": reaction091.RULES,
    "amqp091/sizes": sizes091.RULES,
    "amqp091/entities": entities091.RULES,
    "amqp091/existence": existence091.RULES,
    "amqp091/forwarding": forwarding091.RULES,
    "amqp091/types": types091.RULES,
    "amqp091/values": values091.RULES,
    "amqp091/negotiation": negotiation091.RULES,
    "amqp091/introduction": introduction.RULES,
    "amqp091/tuning": tuning.RULES,
    "amqp091/set_up_refused": set_up_refused.RULES,
    "amqp091/blocked": blocked.RULES,
    "amqp091/closing": closing.RULES,
    "amqp091/complaint": complaint.RULES,
    "amqp091/heartbeat": heartbeat.RULES,
    "amqp091/framing": framing091.RULES,
    "amqp091/requests": requests.RULES,
}
"""The rules of each file in `amqpscope/rules/`, by its path there."""

_CHECKED: Final[dict[str, str]] = {rule: subject for subject, rules in SUBJECTS.items() for rule in rules}


def checked() -> dict[str, str]:
    """The rules that are checked, each with the file that has it: `amqp10/L-CREDIT` is in `amqp10/link`."""
    return dict(_CHECKED)
