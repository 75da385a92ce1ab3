"""Deliveries that nobody settles, or slowly, and credit that is renewed before anything is settled."""

from typing import Any, Final

from amqpscope.diagnoses.amqp10.link_state import LinkState
from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.tracking.amqp10.identity import PEERS
from dissectors.wording import are, count

__all__ = ["CREDIT_ON_RECEIPT", "MISCOUNTED", "SETTLEMENT_SLOW", "UNSETTLED_PILE", "settlement_ended"]

CREDIT_ON_RECEIPT: Final = declare(
    "credit-on-receipt",
    ("1.0",),
    """A receiver renews its credit for what it has received, not for what it has settled.

    Means: The credit does not bound how many deliveries are being worked on: many more are unsettled.
    Comes about: The credit window of some libraries (rhea, AMQP.Net Lite, Artemis) counts what was received.
    Move: The receiver's.
    Client: Grant credit by hand when a delivery is settled, or bound the work in another way.
    Server: A broker that receives has to bound what it holds for other receivers.
    Silent when: The sender settles what it sends, the credit is raised on purpose, or in transactions.
    Threads: Azure/amqpnetlite#270, apache/activemq-artemis#2272, apache/activemq-artemis#3130
    """,
    Limit("times", 3, "twice the credit is the usual overlap of renewing and settling"),
    Limit("deliveries", 50, "fewer unsettled deliveries hurt nobody"),
)

UNSETTLED_PILE: Final = declare(
    "unsettled-pile",
    ("1.0",),
    """Deliveries pile up that are never settled.

    Means: The receiver gives them no outcome; or it has given one, and the sender, who settles first in
    receiver settle mode second, does not settle. The sender has to keep them, and may not reuse their tags.
    Comes about: Automatic accepting is switched off, and the application does not accept; a settle mode is
    misunderstood.
    Move: The receiver's. Where the receiver has given the outcomes: the sender's.
    Client: Accept, release or reject each message, or let the library accept automatically.
    Server: Settle what the other peer has given an outcome for.
    Silent when: One delivery is slow, the deliveries are part of a transaction, or octets are missing.
    Threads: noodlefrenzy/node-amqp10#316, rabbitmq/rabbitmq-server#6236, Azure/go-amqp#33
    """,
    Limit("seconds", 20, "an application may work on a batch for that long"),
    Limit("settle-seconds", 10, "a sender has nothing to work on before it settles"),
    Limit("deliveries", 10, "fewer may be what the application works on"),
)

SETTLEMENT_SLOW: Final = declare(
    "settlement-slow",
    ("1.0",),
    """The receiver of a link takes long to settle each delivery.

    Means: The messages come, and wait for their outcomes.
    Comes about: Slow processing, a slow disk or replica of a broker, or outcomes in large batches.
    Move: The receiver's.
    Client: Find out what the application does before it accepts; give it less credit, or more workers.
    Server: Look at disk and replication of the queue.
    Silent when: The sender settles what it sends, or fewer deliveries than the limit were settled.
    """,
    Limit("seconds", 5, "the median: a single slow delivery is none of this"),
    Limit("deliveries", 5, "fewer say nothing about a median"),
)

MISCOUNTED: Final = declare(
    "frames-counted-as-messages",
    ("1.0",),
    """A peer counts the transfers of large messages as messages.

    Means: The delivery-count that it says rose by one for each transfer. So the credit runs out early, or is
    too large, and the two never agree again.
    Comes about: A library counts frames, which shows only with messages of several transfers.
    Move: Who says the delivery-count.
    Client: Update the library, or raise max-frame-size so that a message fits into one transfer.
    Server: The same.
    Silent when: The link was drained, a delivery was aborted, or each message has one transfer.
    Threads: Azure/azure-sdk-for-python#32767
    """,
)


def settlement_ended(notebook: Notebook, state: LinkState, ended: int, until: int) -> bool:
    """A link is over, or what is known of it. Whether a pile of unsettled deliveries was found."""
    sender, receiver = PEERS[state.sender], PEERS[state.receiver]
    _on_receipt(notebook, state, receiver)
    latency = state.latency
    slow = notebook.limit(SETTLEMENT_SLOW)
    median = latency.percentile(0.5)
    if (
        not notebook.skewed
        and latency.count >= notebook.limit(SETTLEMENT_SLOW, "deliveries")
        and median >= slow
    ):
        notebook.add(
            SETTLEMENT_SLOW,
            state.subject,
            receiver,
            state.first_packet,
            f"link {state.subject}: {receiver} takes {duration(median)} to settle a delivery (the median of "
            f"{latency.count}, the slowest took {duration(latency.longest / SECOND)})",
            {
                "settled": latency.count,
                "median": round(median, 1),
                "slowest": round(latency.longest / SECOND, 3),
            },
            packets=(latency.from_packet, latency.to_packet),
        )
    if state.miscount is not None:
        _miscounted(notebook, state, ended, until)
    return (
        not state.transactional
        and not state.untracked
        and _pile(notebook, state, ended, until, sender, receiver)
    )


def _on_receipt(notebook: Notebook, state: LinkState, receiver: str) -> None:
    least = max(
        notebook.limit(CREDIT_ON_RECEIPT, "times") * state.largest,
        notebook.limit(CREDIT_ON_RECEIPT, "deliveries"),
    )
    if state.transactional or not state.largest or not state.renewed_packet or state.peak < least:
        return
    notebook.add(
        CREDIT_ON_RECEIPT,
        state.subject,
        receiver,
        state.renewed_packet,
        f"link {state.subject}: up to {state.peak} deliveries were unsettled on a credit of {state.largest}: "
        f"{receiver} renews credit when it receives, not when it settles",
        {
            "largest_credit": state.largest,
            "peak_unsettled": state.peak,
            "deliveries": state.deliveries,
            "unsettled_end": len(state.unsettled),
        },
    )


def _miscounted(notebook: Notebook, state: LinkState, ended: int, until: int) -> None:
    assert state.miscount is not None
    side, packet, time, figures = state.miscount
    notebook.add(
        MISCOUNTED,
        state.subject,
        PEERS[side],
        packet,
        f"link {state.subject}: the delivery-count of {PEERS[side]} rose by {figures['transfers']} for "
        f"{figures['deliveries']} messages in {figures['transfers']} transfers: it counts transfers",
        figures,
        seconds=(until - time) / SECOND,
        ended=ended,
    )


def _pile(notebook: Notebook, state: LinkState, ended: int, until: int, sender: str, receiver: str) -> bool:
    least = notebook.limit(UNSETTLED_PILE, "deliveries")
    figures: dict[str, Any] = {"variant": "accepted-not-settled", "deliveries": state.deliveries}
    if len(state.answered) >= least:
        packet, since = next(iter(state.answered.values()))
        number, who = len(state.answered), state.sender
        patience = notebook.limit(UNSETTLED_PILE, "settle-seconds")
        figures |= {"accepted": number, "unsettled": len(state.unsettled)}
        text = f"{receiver} has given the outcome of {count(number, 'delivery')}, {sender} never settles them"
    else:
        waiting = [one for one in state.unsettled.values() if not one.answered]
        if len(waiting) < least:
            return False
        packet, since = waiting[0].packet, waiting[0].time
        number, who = len(waiting), state.receiver
        patience = notebook.limit(UNSETTLED_PILE)
        figures |= {
            "variant": "no-outcome",
            "unsettled": number,
            "settled": state.settled,
            "credit_left": state.credit,
        }
        text = f"{count(number, 'delivery')} {are(number)} unsettled, {receiver} gives no outcome"
    if not notebook.idle(who, since, until, patience):
        return False
    seconds = (until - since) / SECOND
    notebook.add(
        UNSETTLED_PILE,
        state.subject,
        PEERS[who],
        packet,
        f"link {state.subject}: {text}; the oldest waits for {duration(seconds)}",
        figures,
        seconds=seconds,
        ended=ended,
    )
    return True
