"""Deliveries that nobody settles, or slowly, and credit that is renewed before anything is settled."""

from typing import Any, Final

from amqpscope.diagnoses.amqp10.link_state import LinkState, Miscount
from amqpscope.diagnoses.declaration import MAY_END, Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.model.records import PEERS
from dissectors.wire import i64
from dissectors.wording import are, count

__all__ = [
    "CREDIT_ON_RECEIPT",
    "MISCOUNTED",
    "SETTLEMENT_SLOW",
    "UNSETTLED_PILE",
    "pile_ended",
    "settlement_ended",
]

CREDIT_ON_RECEIPT: Final = declare(
    "credit-on-receipt",
    ("1.0",),
    """A receiver grants new credit when messages arrive, not when the receiver settles the messages.

    What it means: The credit does not limit the number of deliveries that are being processed. Therefore the
    number of unsettled deliveries is much larger than the credit.
    Usual causes: Some libraries (rhea, AMQP.Net Lite, Artemis) renew credit for each received message.
    Who has to act: The receiver.
    Client: Let the application grant credit when it settles a delivery. Or limit in the application how many
    deliveries are processed at the same time.
    Server: If the broker is the receiver, limit the number of messages that the broker stores for other
    receivers.
    Not reported when: the sender settles its deliveries without an outcome of the receiver (for example by
    sending them settled), the receiver raises the credit on purpose, or the deliveries are part of
    transactions.
    Discussions: Azure/amqpnetlite#270, apache/activemq-artemis#2272, apache/activemq-artemis#3130
    """,
    Limit(
        "times",
        3,
        ("up to twice the credit is usual if the receiver settles deliveries while new deliveries arrive"),
    ),
    Limit("deliveries", 50, "a smaller number of unsettled deliveries does no harm"),
)

UNSETTLED_PILE: Final = declare(
    "unsettled-pile",
    ("1.0",),
    """Many deliveries of a link are never settled.

    What it means: The receiver sends no outcome for the deliveries. In rcv-settle-mode `second`, the sender
    has to settle first. In this mode, the receiver may have sent outcomes, but the sender does not settle the
    deliveries. The sender has to keep these deliveries and cannot reuse their delivery-tags.
    Usual causes: The library does not accept messages automatically, and the application accepts no messages
    either. Or a peer does not follow the agreed settle mode.
    Who has to act: The receiver. If the receiver has already sent an outcome for each delivery, the sender
    has to act.
    Client: Accept, release or reject each message, or configure the library to accept messages automatically.
    Server: Settle the deliveries for which the other peer has sent an outcome.
    Not reported when: only one delivery is slow, the deliveries are part of a transaction, or the capture
    lacks octets.
    Discussions: noodlefrenzy/node-amqp10#316, rabbitmq/rabbitmq-server#6236, Azure/go-amqp#33
    """,
    Limit("seconds", 20, "an application may need this time to process a batch"),
    Limit("settle-seconds", 10, "a sender needs no time for processing before the sender settles a delivery"),
    Limit("deliveries", 10, "the application may be processing a smaller number of deliveries"),
    explains=(MAY_END,),
)

SETTLEMENT_SLOW: Final = declare(
    "settlement-slow",
    ("1.0",),
    """The receiver of a link needs a long time to settle each delivery.

    What it means: The messages arrive and then wait for their outcomes.
    Usual causes: Processing is slow, a disk or a replica of a broker is slow, or outcomes are sent in large
    batches.
    Who has to act: The receiver.
    Client: Find out what the application does before the application accepts a message. Grant less credit, or
    use more workers.
    Server: Check the disk and the replication of the queue.
    Not reported when: the sender settles its deliveries without an outcome of the receiver (for example by
    sending them settled), or the number of settled deliveries is below the limit.
    Discussions: Azure/azure-service-bus-dotnet#378
    """,
    Limit("seconds", 5, "the limit is for the median, so a single slow delivery is not reported"),
    Limit("deliveries", 5, "a median of fewer deliveries is not meaningful"),
)

MISCOUNTED: Final = declare(
    "frames-counted-as-messages",
    ("1.0",),
    """A peer counts each transfer of a large message as a message of its own.

    What it means: The delivery-count of the peer rises by one for each transfer. The credit runs out too
    early or is too large, and the delivery-counts of the two peers never agree again.
    Usual causes: A library counts frames instead of messages. The fault appears only with messages of several
    transfers.
    Who has to act: The peer that sends the wrong delivery-count.
    Client: Update the library, or raise max-frame-size so that each message fits into one transfer.
    Server: Update the library, or raise max-frame-size so that each message fits into one transfer.
    Not reported when: the link was drained, a delivery was aborted, or each message has one transfer.
    Discussions: Azure/azure-sdk-for-python#32767
    """,
    explains=(MAY_END,),
)


def settlement_ended(notebook: Notebook, state: LinkState, ended: i64, until: i64) -> bool:
    """A link is over, or what is known of it. Whether a pile of unsettled deliveries was found."""
    receiver = PEERS[state.receiver]
    _on_receipt(notebook, state, receiver)
    _slow(notebook, state, receiver)
    if state.miscount is not None:
        _miscounted(notebook, state, state.miscount, ended, until)
    return pile_ended(notebook, state, ended, until)


def _slow(notebook: Notebook, state: LinkState, receiver: str) -> None:
    settling = state.held.settling
    median = settling.median()
    if (
        settling.slow is None
        or notebook.skewed
        or median < notebook.limit(SETTLEMENT_SLOW)
        or int(settling.count) < notebook.limit(SETTLEMENT_SLOW, "deliveries")
    ):
        return
    slow = settling.slow
    notebook.add(
        SETTLEMENT_SLOW,
        state.subject,
        receiver,
        state.first_packet,
        f'link "{state.subject}": the {receiver} takes {duration(median)} to settle a delivery (median of '
        f"{settling.count} deliveries; the slowest took {duration(slow.longest / SECOND)})",
        {
            "settled": settling.count,
            "median": round(median, 1),
            "slowest": round(slow.longest / SECOND, 3),
        },
        packets=(int(slow.from_packet), int(slow.to_packet)),
    )


def _on_receipt(notebook: Notebook, state: LinkState, receiver: str) -> None:
    if state.transactional or not state.credit.largest or not state.credit.renewed_packet:
        return
    least = max(
        notebook.limit(CREDIT_ON_RECEIPT, "times") * int(state.credit.largest),
        notebook.limit(CREDIT_ON_RECEIPT, "deliveries"),
    )
    if int(state.held.peak) < least:
        return
    notebook.add(
        CREDIT_ON_RECEIPT,
        state.subject,
        receiver,
        state.credit.renewed_packet,
        f'link "{state.subject}": up to {state.held.peak} deliveries were unsettled at the same time, with a '
        f"credit of {state.credit.largest}, because the {receiver} grants new credit when deliveries arrive, "
        f"not when the {receiver} settles them",
        {
            "largest_credit": state.credit.largest,
            "peak_unsettled": state.held.peak,
            "deliveries": state.deliveries,
            "unsettled_end": state.held.unsettled,
        },
    )


def _miscounted(notebook: Notebook, state: LinkState, known: Miscount, ended: i64, until: i64) -> None:
    figures = known.figures
    notebook.add(
        MISCOUNTED,
        state.subject,
        PEERS[known.side],
        known.packet,
        f'link "{state.subject}": the delivery-count of the {PEERS[known.side]} rose by '
        f"{figures['transfers']} for {figures['deliveries']} messages, because the {PEERS[known.side]} "
        "counts transfers instead of messages",
        figures,
        seconds=(until - known.time) / SECOND,
        ended=ended,
    )


def pile_ended(notebook: Notebook, state: LinkState, ended: i64, until: i64) -> bool:
    """A pile of unsettled deliveries is over, or what is known of it. Whether there is one."""
    least = notebook.limit(UNSETTLED_PILE, "deliveries")
    if state.transactional or state.held.untracked or int(state.held.unsettled) < least:
        return False
    sender, receiver = PEERS[state.sender], PEERS[state.receiver]
    figures: dict[str, Any] = {"variant": "accepted-not-settled", "deliveries": state.deliveries}
    if len(state.held.answered) >= least:
        packet, since = next(iter(state.held.answered.values()))
        number, who = len(state.held.answered), state.sender
        patience = notebook.limit(UNSETTLED_PILE, "settle-seconds")
        figures |= {"accepted": number, "unsettled": state.held.unsettled}
        text = (
            f"the {receiver} has sent outcomes for {count(number, 'delivery')}, but the {sender} does not "
            "settle them"
        )
    else:
        waiting = state.waiting()
        if len(waiting) < least:
            return False
        packet, since = int(waiting[0].packet), int(waiting[0].time)
        number, who = len(waiting), state.receiver
        patience = notebook.limit(UNSETTLED_PILE)
        figures |= {
            "variant": "no-outcome",
            "unsettled": number,
            "settled": state.held.settled,
            "credit_left": state.credit.left(),
        }
        text = f"{count(number, 'delivery')} {are(number)} unsettled, because the {receiver} sends no outcome"
    if not notebook.idle(who, since, until, patience):
        return False
    seconds = (until - since) / SECOND
    notebook.add(
        UNSETTLED_PILE,
        state.subject,
        PEERS[who],
        packet,
        f'link "{state.subject}": {text}; the oldest delivery has waited for {duration(seconds)}',
        figures,
        seconds=seconds,
        ended=ended,
    )
    return True
