"""channel.open: which channel numbers a client may open, and when.

Sources: channel.open (amqp0-9-1.xml), sections 2.2.5 and 2.3.7 of the general specification.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.channel_state import closing_of, is_answered, state_of
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.endpoint import ALL
from amqpscope.tracking.amqp091.states import (
    CHANNEL,
    CLIENT_OPEN,
)

__all__ = ["judge_open"]

RULES: Final = Rules("amqp091/channel_open")


CH_OPEN_STATE: Final = RULES.rule(
    "CH-OPEN-STATE", "MUST NOT", "tier A", by="client", answer="connection.close 504"
)


def opened_while_open(case: Case091, channel: Channel) -> None:
    """A client sends channel.open for a channel that is already open.

    Demands: A client must not send channel.open for a channel number that is already open.
    Source: XML:channel.open.state
    Evidence: the state of the channel (open or not)
    Why it matters: Brokers answer by closing the connection, which ends all other channels. The usual cause
    is that two threads share a connection but not the list of its channels.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Assign the channel numbers of a connection in one place, under a lock. Send channel.open
    only for a number that is not in use, and free the number after channel.close-ok.
    """
    case.report(
        CH_OPEN_STATE,
        f"the peer sends channel.open for channel {channel.number}, which has been open since packet "
        f"{channel.open_packet}",
        CERTAIN,
        state_of(case),
        [int(channel.open_packet)],
    )


CH_REUSE: Final = RULES.rule("CH-REUSE", "IMPLIED", "tier A", by="client", answer="connection.close 504")


def reused_too_early(case: Case091, channel: Channel) -> None:
    """A client opens a channel number again before channel.close-ok has ended the previous channel of that
    number.

    Demands: A client may open a channel number again only after channel.close-ok for the previous channel of
    that number. The client must wait for channel.close-ok if it closed the channel itself, and must send
    channel.close-ok if the server closed the channel.
    Source: G:channel; GS:2.3.7
    Evidence: the order of channel.close, channel.close-ok and channel.open on the channel number
    Why it matters: The peers may assign the answer for the old channel.close to the new channel. Brokers
    close the connection.
    Silent when: the capture lacks octets after the channel.close. The rule is also silent when both peers
    have closed the channel and the client has sent its channel.close-ok.
    How to mend it: Keep a channel number reserved after channel.close until channel.close-ok arrives. When
    the server closes the channel, send channel.close-ok first and only then open the number again.
    """
    if is_answered(case, channel):
        return
    closing = closing_of(case, channel, True) or closing_of(case, channel, False)
    packet = 0 if closing is None else int(closing.packet)
    case.report(
        CH_REUSE,
        f"the peer sends channel.open for channel {channel.number} although channel.close in packet "
        f"{packet} is not answered yet",
        CERTAIN,
        state_of(case),
        [packet],
    )


CH_NUM_MAX: Final = RULES.rule("CH-NUM-MAX", "IMPLIED", "tier A", by="client", answer="connection.close 504")


def number_above_limit(case: Case091) -> None:
    """A client opens a channel whose number is above the agreed channel-max.

    Demands: Channel numbers must lie between 1 and the agreed channel-max.
    Source: XML:connection.tune.channel-max (field doc); GS:4.2.3
    Evidence: the channel-max in connection.tune-ok (0 means 65535), and the channel number of each frame
    Why it matters: The broker may have no room for the channel and then closes the connection. Some brokers
    do not check the channel number and count only the open channels.
    Silent when: the capture lacks connection.tune-ok or octets after it, or when the peers agreed that there
    is no limit. Two further faults are reported by other rules: a channel.open for a channel that is already
    open, and a number of open channels above channel-max.
    How to mend it: Assign channel numbers from 1 to the channel-max sent in connection.tune-ok, and reuse
    freed numbers instead of counting upwards.
    """
    limit = case.view.agreed.channel_max
    case.report(
        CH_NUM_MAX,
        f"the peer sends channel.open for channel {case.record.frame.channel}, but channel-max is {limit}",
        CERTAIN,
        {"channel": int(case.record.frame.channel), "channel_max": int(limit)},
        [int(case.view.agreed.packet)],
    )
    case.astray = ALL


CH_COUNT_MAX: Final = RULES.rule(
    "CH-COUNT-MAX", "IMPLIED", "tier A", by="client", answer="connection.close 530"
)


def too_many_open(case: Case091) -> None:
    """A client opens more channels at once than the agreed channel-max allows.

    Demands: A connection must not have more than channel-max open channels at a time.
    Source: XML:connection.tune-ok.channel-max (field doc)
    Evidence: the number of open channels, and the channel-max in connection.tune-ok
    Why it matters: The broker closes the connection with reply-code 530 (not-allowed). The usual cause is
    an application that never closes its channels.
    Silent when: the capture lacks connection.tune-ok or octets after it, or when the peers agreed that there
    is no limit.
    How to mend it: Count the open channels in the client, and open no channel beyond channel-max.
    Applications should reuse long-lived channels and close each channel that they no longer need, also on
    error paths.
    """
    view = case.view
    case.report(
        CH_COUNT_MAX,
        f"the peer sends channel.open while {view.table.open} channels are open, but channel-max is "
        f"{view.agreed.channel_max}",
        CERTAIN,
        {"channels": int(view.table.open), "channel_max": int(view.agreed.channel_max)},
        [int(view.agreed.packet)],
    )


def judge_open(case: Case091) -> bool:
    """channel.open of a client."""
    channel = case.channel
    if channel is not None and not CHANNEL.allows(channel.state, CLIENT_OPEN):
        if channel.whole:
            if channel.is_open:
                opened_while_open(case, channel)
            else:
                reused_too_early(case, channel)
        return False
    view = case.view
    if view.agreed.channel_max > 0 and view.whole:
        if view.table.open >= view.agreed.channel_max:
            too_many_open(case)
        elif case.record.frame.channel > view.agreed.channel_max:
            number_above_limit(case)
    return True
