"""Connections: protocol headers, opens, agreed limits and closes (transport.xml, "connections")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.legibility import ALL
from amqpscope.tracking.amqp10.states import CONNECTION, SEND_CLOSE, SEND_FRAME, SEND_OPEN
from dissectors.amqp10.performatives import Begin, Close, Open
from dissectors.wire import i64

__all__ = ["frame_before_header", "judge_any", "judge_close", "judge_open", "speaks_the_draft"]

RULES: Final = Rules("amqp10/connection")


def _frame(name: str) -> str:
    """A frame by its name, as the subject of a message."""
    return "an empty frame" if name == "empty" else name


C_HDR_FIRST: Final = RULES.rule("C-HDR-FIRST", "MUST", "keyword")


def frame_before_header(case: Case10) -> None:
    """A peer sends a frame before its protocol header.

    Demands: Each peer must begin its stream with a protocol header, and may send frames only after this
    header.
    Source: transport.xml section version-negotiation
    Evidence: the first 8 octets in each direction
    Why it matters: The other peer cannot know which protocol and which version the octets belong to, so it
    cannot parse the stream.
    Silent when: the start of the peer's stream was not captured.
    How to mend it: Write the 8-octet protocol header as the first octets of the connection, before any frame.
    After SASL, write a second protocol header, the one for AMQP, before the open.
    """
    case.report(C_HDR_FIRST, f"the peer sends {_frame(case.record.frame.name)} before the protocol header")


C_OPEN_FIRST: Final = RULES.rule(
    "C-OPEN-FIRST", "MUST", "keyword", usual_answer="amqp:not-allowed or amqp:connection:framing-error"
)


def first_frame_is_not_open(case: Case10) -> None:
    """The first frame that a peer sends after the AMQP protocol header is a frame other than `open`.

    Demands: The first AMQP frame that each peer sends must be an `open`.
    Source: transport.xml section performatives > open; transport.xml section connections > Opening a
    Connection
    Evidence: the first AMQP frame in each direction
    Why it matters: The open carries the limits on which all other frames depend. Without the open, the other
    peer cannot process the frame and may close the connection.
    Silent when: the start of the peer's stream was not captured, or when a frame before the open was already
    reported.
    How to mend it: Send open directly after the AMQP protocol header, and hold back all other frames until
    the open has been written.
    """
    case.report_once(
        C_OPEN_FIRST, f"the peer sends {case.record.frame.name} before its own open", CERTAIN, _state(case)
    )


C_CLOSE_AFTEROPEN: Final = RULES.rule(
    "C-CLOSE-AFTEROPEN", "illegal", "definition", usual_answer="amqp:illegal-state"
)


def close_before_open(case: Case10) -> None:
    """A peer sends close before its own open.

    Demands: A peer must not send close before its own open, not even to report an error.
    Source: transport.xml section connections > Connection State Diagram (legal sends)
    Evidence: a close that the peer sends as its first frame
    Why it matters: A peer must identify itself by its own open first, even when it refuses the other peer's
    open. The other peer perhaps does not process a close without an open.
    Silent when: the start of the peer's stream was not captured, or when a frame before the open was already
    reported.
    How to mend it: To refuse a connection, send your own open first, and then a close with the error. On
    every error path that can run before the open is sent, send first open and then close.
    """
    case.report_once(C_CLOSE_AFTEROPEN, "the peer sends close before its own open", CERTAIN, _state(case))


C_EMPTY_AFTEROPEN: Final = RULES.rule(
    "C-EMPTY-AFTEROPEN", "MUST", "definition", usual_answer="amqp:not-allowed"
)


def empty_frame_before_open(case: Case10) -> None:
    """A peer sends an empty frame before its own open.

    Demands: A peer must not send an empty frame before its own open.
    Source: transport.xml section connections > Idle Time-out
    Evidence: an empty frame that the peer sends before its open
    Why it matters: An empty frame only keeps an established connection alive, but the first frame must be the
    open. The other peer may close the connection.
    Silent when: the start of the peer's stream was not captured, or when a frame before the open was already
    reported.
    How to mend it: Start the heartbeat timer only after your own open has been written.
    """
    case.report_once(C_EMPTY_AFTEROPEN, "the peer sends an empty frame before its own open", CERTAIN, {})


def open_is_missing(case: Case10, peer: str) -> bool:
    """Whether a finding says already that this peer sends frames before its open."""
    return any((peer, rule) in case.reported for rule in (C_OPEN_FIRST, C_CLOSE_AFTEROPEN, C_EMPTY_AFTEROPEN))


# The inputs of the table `CONNECTION` that frames are; all others are any frame.
_INPUTS: Final = {"open": SEND_OPEN, "close": SEND_CLOSE}


def _judge_illegal(case: Case10) -> bool:
    """Judge a frame that is illegal in the state of the connection; True if a rule reports it."""
    me = case.me
    if me.closing.sent:
        frame_after_close(case)
        return True
    if not me.whole or me.open is not None:
        # The missing octets may have made the frame legal. A second open is judged as an open.
        return False
    frame = case.record.frame
    name = frame.name
    if me.layer == "":
        frame_before_header(case)
    elif me.layer != "AMQP 1.0" or name == "open" or (frame.problems and frame.garbled()):
        # The performative of a garbled frame is uncertain.
        return False
    elif open_is_missing(case, me.peer):
        return True
    elif name == "close":
        close_before_open(case)
    elif name == "empty":
        empty_frame_before_open(case)
    else:
        first_frame_is_not_open(case)
    return True


C_CLOSE_LAST: Final = RULES.rule(
    "C-CLOSE-LAST", "illegal", "keyword", usual_answer="amqp:connection:framing-error"
)


def frame_after_close(case: Case10) -> None:
    """A peer sends a frame after its own close.

    Demands: After its close, a peer must not send anything on the connection, not even an empty frame.
    Source: transport.xml section connections > Closing a Connection, Connection States; transport.xml section
    performatives > close
    Evidence: every octet that the peer sends after its close
    Why it matters: The close is the last frame that a peer sends on a connection. The other peer perhaps does
    not read frames after the close, so the content of these frames may be lost.
    Silent when: the capture lacks octets that were sent before the close, and the close does not answer a
    close. Such a close was only found by a search, and may be part of a message that contains AMQP traffic.
    When the capture lacks octets that were sent after the close, the finding is reported as possible and not
    as certain.
    Possible because: The capture lacks octets, and these octets may contain the start of a new connection.
    How to mend it: As soon as you have written close, discard all queued frames and stop the heartbeat timer.
    After your close, send nothing and only read until the other peer's close arrives.
    """
    me = case.me
    name = case.record.frame.name
    first = int(me.closing.packet)
    case.report(
        C_CLOSE_LAST,
        f"the peer sends a second close; the first close was in packet {first}"
        if name == "close"
        else f"the peer sends {_frame(name)} after its own close in packet {first}",
        CERTAIN if me.closing.stands else POSSIBLE,
        _state(case),
        [first],
    )


C_MAXFRAME: Final = RULES.rule(
    "C-MAXFRAME", "MUST NOT", "keyword", answer="amqp:connection:framing-error", octets=True
)


def frame_larger_than_agreed(case: Case10, size: i64, limit: int) -> None:
    """A peer sends a frame that is larger than the max-frame-size in the other peer's open.

    Demands: A frame must not be larger than the max-frame-size that the receiving peer announced in its open.
    Source: transport.xml section performatives > open.max-frame-size
    Evidence: the size of the frame, and the max-frame-size in the open of the other peer
    Why it matters: The receiver must close the connection with amqp:connection:framing-error, which ends all
    sessions and links of the connection.
    Silent when: the receiver's open was not captured. The rule is also silent when a part of the frame
    was not captured and amqpscope had to guess where the frame starts.
    How to mend it: Limit every frame, including header and performative, to the max-frame-size of the other
    peer's open. Split large messages into several transfers, and set more=true on each of these transfers
    except the last.
    """
    what = "the frame has" if case.record.frame.missing == 0 else "the header of the frame announces"
    case.report(
        C_MAXFRAME,
        f"{what} {size} octets, but the other peer's max-frame-size is {limit}",
        CERTAIN,
        {"frame_size": int(size), "max_frame_size": limit},
        [int(case.me.opening.peer_packet)],
    )
    # Possibly only the size field is wrong. Its receiver then took a part of the frame for the whole frame.
    case.misread(case.record.frame, case.record.direction)


C_OPEN_SIZE: Final = RULES.rule(
    "C-OPEN-SIZE", "MUST", "definition", answer="amqp:connection:framing-error", octets=True
)


def open_larger_than_512_octets(case: Case10, size: i64) -> None:
    """A peer sends an open of more than 512 octets before it has received the other peer's open.

    Demands: An open that a peer sends before it has received the other peer's open must not have more
    than 512 octets.
    Source: transport.xml section connections > Opening a Connection; transport.xml section definitions >
    MIN-MAX-FRAME-SIZE
    Evidence: the size of the open, and the order of the two opens
    Why it matters: Before the peers have agreed on limits, a receiver need not accept frames larger than 512
    octets. The receiver may close the connection.
    Silent when: the receiver's open may already have reached the peer, or when octets of either peer were not
    captured.
    How to mend it: Keep the open within 512 octets, for example by a shorter container-id and fewer
    properties or capabilities. Send a larger open only after the other peer's open has arrived.
    """
    message = (
        f"the open has {size} octets, but before the other peer's open arrives only "
        f"{case.least_max_frame_size} octets are allowed"
    )
    case.report(C_OPEN_SIZE, message, CERTAIN, {"frame_size": int(size)})


C_PIPE_SIZE: Final = RULES.rule(
    "C-PIPE-SIZE", "MUST", "definition", answer="amqp:connection:framing-error", octets=True
)


def pipelined_frame_larger_than_512_octets(case: Case10, size: i64) -> None:
    """A peer sends a frame of more than 512 octets before it has received the other peer's open.

    Demands: A frame that a peer sends before the other peer's open arrives must not have more than 512
    octets.
    Source: transport.xml section connections > Opening a Connection, Pipelined Open
    Evidence: the sizes of the frames that were captured before the other peer's open
    Why it matters: Before the peers have agreed on limits, a receiver need not accept frames larger than 512
    octets. The receiver may close the connection.
    Silent when: the receiver's open may already have reached the peer, or when octets of either peer were not
    captured. The rule is also silent when the other peer itself sends frames before its open.
    How to mend it: Before the other peer's open has arrived, send no frame of more than 512 octets.
    """
    limit = case.least_max_frame_size
    message = (
        f"the frame has {size} octets, but before the other peer's open arrives only {limit} octets "
        "are allowed"
    )
    case.report(C_PIPE_SIZE, message, CERTAIN, {"frame_size": int(size)})


def _pipelines(case: Case10) -> bool:
    """Whether a peer that has not received the other peer's open still has to wait for it."""
    me = case.me
    return me.whole and me.layer == "AMQP 1.0" and not open_is_missing(case, case.peer.peer)


def _judge_size(case: Case10, size: i64) -> None:
    me = case.me
    least = case.least_max_frame_size
    if size <= least:
        return
    theirs = me.peer_open
    if theirs is not None:
        limit = theirs.max_frame_size
        if limit is not None and least <= limit < size:
            # Without the other peer's open the limit would have been even smaller.
            frame_larger_than_agreed(case, size, limit)
    elif _pipelines(case):
        if case.record.frame.name == "open":
            open_larger_than_512_octets(case, size)
        else:
            pipelined_frame_larger_than_512_octets(case, size)


C_CHMAX: Final = RULES.rule("C-CHMAX", "MUST NOT", "keyword", answer="amqp:connection:framing-error")


def channel_beyond_agreed(case: Case10, limit: int) -> None:
    """A peer uses a channel number above the channel-max in the other peer's open.

    Demands: The channel number of a frame must not be above the channel-max that the receiving peer announced
    in its open. The channel-max also limits the number of sessions.
    Source: transport.xml section performatives > open.channel-max
    Evidence: the channel of the frame, and the channel-max in the open of the other peer
    Why it matters: The receiver must close the connection with amqp:connection:framing-error, which ends all
    sessions and links of the connection.
    Silent when: the receiver's open was not captured.
    How to mend it: Assign channel numbers no higher than the channel-max of the other peer's open. Reuse
    channels of ended sessions. When all channels are in use, the API should reject further sessions.
    """
    channel = case.record.frame.channel
    case.report(
        C_CHMAX,
        f"the peer uses channel {channel}, but the other peer's channel-max is {limit}",
        CERTAIN,
        {"channel": int(channel), "channel_max": limit},
        [int(case.me.opening.peer_packet)],
    )
    if case.me.session_on(channel) is None and not isinstance(case.record.frame.body, Begin):
        case.astray = ALL


C_PIPE_CHANNEL: Final = RULES.rule(
    "C-PIPE-CHANNEL", "MUST", "definition", answer="amqp:connection:framing-error"
)


def pipelined_frame_off_channel_0(case: Case10) -> None:
    """A peer uses a channel other than 0 before it has received the other peer's open.

    Demands: A peer may use only channel 0 until the other peer's open arrives.
    Source: transport.xml section connections > Opening a Connection
    Evidence: the channel numbers of the frames that were captured before the other peer's open
    Why it matters: Before the peers have agreed on limits, a receiver need not accept channels other than 0.
    The receiver may close the connection.
    Silent when: the receiver's open may already have reached the peer, or when octets of either peer were not
    captured. The rule is also silent when the rule has already reported the begin of the session to which the
    frame belongs.
    How to mend it: If you begin a session before the other peer's open has arrived, use channel 0. Wait for
    the other peer's open before you use other channels.
    """
    channel = case.record.frame.channel
    message = (
        f"the peer uses channel {channel}, but may use only channel 0 until the other peer's open arrives"
    )
    case.report(C_PIPE_CHANNEL, message, CERTAIN, {"channel": int(channel)})


C_CLOSE_CH0_PIPE: Final = RULES.rule(
    "C-CLOSE-CH0-PIPE", "MUST", "keyword", answer="amqp:connection:framing-error"
)


def pipelined_close_off_channel_0(case: Case10) -> None:
    """A peer sends close on a channel other than 0 before it has received the other peer's open.

    Demands: A close that a peer sends together with its open, before the other peer's open arrives, must use
    channel 0.
    Source: transport.xml section connections > Closing a Connection
    Evidence: an open and a close that were captured before the other peer's open
    Why it matters: Before the peers have agreed on limits, a receiver need not accept channels other than 0.
    The receiver perhaps does not process the close.
    Silent when: the receiver's open may already have reached the peer, or when octets of either peer were not
    captured.
    How to mend it: Always send close on channel 0. Do not use the channel of the session in which the error
    occurred.
    """
    channel = case.record.frame.channel
    message = (
        f"the peer sends close on channel {channel}, but may use only channel 0 until the other peer's open "
        "arrives"
    )
    case.report(C_CLOSE_CH0_PIPE, message, CERTAIN, {"channel": int(channel)})


C_EMPTY_CH0_PRE: Final = RULES.rule(
    "C-EMPTY-CH0-PRE", "MUST", "keyword", answer="amqp:connection:framing-error"
)


def pipelined_empty_frame_off_channel_0(case: Case10) -> None:
    """A peer sends an empty frame on a channel other than 0 before it has received the other peer's open.

    Demands: An empty frame must use channel 0 until the other peer's open has arrived.
    Source: transport.xml section connections > Idle Time-out
    Evidence: the channel of the empty frame, and the order of the empty frame and the other peer's open
    Why it matters: Before the peers have agreed on limits, a receiver need not accept channels other than 0.
    The receiver may close the connection because of a mere heartbeat.
    Silent when: the receiver's open may already have reached the peer, or when octets of either peer were not
    captured.
    How to mend it: Always send empty frames on channel 0. Write the channel number of a heartbeat as the
    constant 0.
    """
    channel = case.record.frame.channel
    message = (
        f"the peer sends an empty frame on channel {channel}, but may use only channel 0 until the other "
        "peer's open arrives"
    )
    case.report(C_EMPTY_CH0_PRE, message, CERTAIN, {"channel": int(channel)})


C_EMPTY_CH0: Final = RULES.rule("C-EMPTY-CH0", "SHOULD", "keyword")


def empty_frame_off_channel_0(case: Case10) -> None:
    """A peer sends an empty frame on a channel other than 0.

    Demands: Empty frames should use channel 0.
    Source: transport.xml section connections > Idle Time-out
    Evidence: the channels of frames without a body
    Why it matters: Receivers ignore the channel of an empty frame, because the frame is only a heartbeat.
    A channel number other than 0 may exceed the receiver's channel-max.
    Silent when: the other peer's open was not captured. If the peer sent the empty frame before the other
    peer's open arrived, the frame breaks a stricter rule, C-EMPTY-CH0-PRE.
    How to mend it: Send empty frames on channel 0. Write the channel number of a heartbeat as the constant 0.
    """
    case.report(
        C_EMPTY_CH0,
        f"the peer sends an empty frame on channel {case.record.frame.channel} instead of channel 0",
    )


C_OPEN_CH0: Final = RULES.rule(
    "C-OPEN-CH0", "MUST", "definition", usual_answer="amqp:connection:framing-error"
)


def open_off_channel_0(case: Case10) -> None:
    """A peer sends open on a channel other than 0.

    Demands: A peer may send open only on channel 0.
    Source: transport.xml section connections > Opening a Connection
    Evidence: the channel of the open
    Why it matters: Before the open, the peers have agreed on no channel other than 0. The other peer may
    close the connection with amqp:connection:framing-error.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Write the open with channel number 0, and check which octets of the frame header hold the
    channel.
    """
    case.report(
        C_OPEN_CH0, f"the peer sends open on channel {case.record.frame.channel} instead of channel 0"
    )


C_CLOSE_CH0: Final = RULES.rule("C-CLOSE-CH0", "SHOULD", "keyword")


def close_off_channel_0(case: Case10) -> None:
    """A peer sends close on a channel other than 0.

    Demands: A peer should send close on channel 0.
    Source: transport.xml section connections > Closing a Connection
    Evidence: the channel of the close
    Why it matters: Receivers must accept a close on any agreed channel, but only channel 0 is always within
    the limits.
    Silent when: the other peer's open was not captured. If the peer sent the close before the other peer's
    open arrived, the close breaks a stricter rule, C-CLOSE-CH0-PIPE.
    How to mend it: Send close on channel 0. Do not use the channel of the session in which the error
    occurred.
    """
    case.report(
        C_CLOSE_CH0, f"the peer sends close on channel {case.record.frame.channel} instead of channel 0"
    )


def _judge_channel(case: Case10) -> bool:
    """The rules about a channel other than 0; True if it is none that the peer knows."""
    me = case.me
    name = case.record.frame.name
    if name == "open":
        open_off_channel_0(case)
        return False
    theirs = me.peer_open
    if theirs is not None:
        limit = theirs.channel_max
        if limit is not None and case.record.frame.channel > limit:
            channel_beyond_agreed(case, limit)
            return True
    elif _pipelines(case):
        if name == "empty":
            pipelined_empty_frame_off_channel_0(case)
        elif name == "close":
            pipelined_close_off_channel_0(case)
        elif name == "begin" or int(case.record.frame.channel) not in me.sessions:
            pipelined_frame_off_channel_0(case)
        return False
    if theirs is not None:
        if name == "empty":
            empty_frame_off_channel_0(case)
        elif name == "close":
            close_off_channel_0(case)
    return False


def judge_any(case: Case10) -> bool:
    """Judge an AMQP frame by itself. False if no inner layer can make sense of the frame."""
    me = case.me
    frame = case.record.frame
    if not me.may_send:
        # Before its own protocol header, a peer may send nothing, whatever it has received.
        legal = me.layer != "" and CONNECTION.allows(me.state, _INPUTS.get(frame.name, SEND_FRAME))
        if not legal and _judge_illegal(case):
            return False
    if frame.missing == 0:
        _judge_size(case, frame.size)
    elif not frame.guessed:
        # The frame header alone shows the size, even if the rest was not captured or not sent.
        _judge_size(case, frame.declared_size)
    return frame.channel <= 0 or not _judge_channel(case)


C_OPEN_ONCE: Final = RULES.rule("C-OPEN-ONCE", "illegal", "definition", usual_answer="amqp:illegal-state")


def second_open(case: Case10) -> None:
    """A peer sends open twice on one connection.

    Demands: A peer must send open only once per connection. A second open is not permitted in any state of
    the connection.
    Source: transport.xml section connections > Connection State Diagram
    Evidence: a second open in the same direction
    Why it matters: A peer announces its limits only once per connection. The other peer cannot know which
    limits apply, and may close the connection with amqp:illegal-state.
    Silent when: the capture lacks octets that were sent after the first open, because the peers may have
    opened a new connection since then.
    How to mend it: Send open once per connection. To change limits or properties, close the connection and
    open a new connection. Check that only one place in the code sends the open.
    """
    me = case.me
    if me.open is not None and me.whole and not CONNECTION.allows(me.state, SEND_OPEN):
        case.report(
            C_OPEN_ONCE,
            f"the peer sends a second open; the first open was in packet {me.opening.packet}",
            CERTAIN,
            _state(case),
            [int(me.opening.packet)],
        )


C_MAXFRAME_FLOOR: Final = RULES.rule("C-MAXFRAME-FLOOR", "MUST", "keyword", usual_answer="amqp:invalid-field")


def max_frame_size_below_the_floor(case: Case10, body: Open) -> None:
    """A peer announces in its open a max-frame-size below 512.

    Demands: Every peer must accept frames of 512 octets, so an open must not announce a smaller
    max-frame-size.
    Source: transport.xml section performatives > open.max-frame-size; transport.xml section definitions >
    MIN-MAX-FRAME-SIZE
    Evidence: the max-frame-size of the open
    Why it matters: Every peer must accept frames of 512 octets. The other peer is perhaps unable to send its
    open within a smaller limit.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Announce a max-frame-size of at least 512, and provide receive buffers of that size.
    Reject a configured max-frame-size below 512.
    """
    size = body.max_frame_size
    if size is not None and size < case.least_max_frame_size:
        case.report(
            C_MAXFRAME_FLOOR,
            f"the max-frame-size of the open is {size}, but must be at least {case.least_max_frame_size}",
            CERTAIN,
            {"max_frame_size": size},
        )


C_LOCALE_TAG: Final = RULES.rule(
    "C-LOCALE-TAG", "MUST", "definition", usual_answer="amqp:invalid-field", octets=True
)


def locale_that_is_no_language_tag(case: Case10, body: Open) -> None:
    """A peer's open contains a locale that is not a BCP 47 language tag.

    Demands: Each locale must be a symbol that forms a BCP 47 tag, with hyphens and not with underscores.
    Source: transport.xml section definitions > ietf-language-tag
    Evidence: the outgoing-locales and incoming-locales of the open
    Why it matters: The other peer cannot match the locale and falls back to en-US. Libraries often write
    `en_US`, but the BCP 47 tag is `en-US`.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Convert the locale of the system to a BCP 47 tag before writing the open. Replace
    underscores by hyphens and cut off the character set, so that `de_DE.UTF-8` becomes `de-DE`.
    """
    for tags in (body.outgoing_locales, body.incoming_locales):
        if tags is not None:
            for tag in tags:
                if not tag or not tag.replace("-", "").isalnum() or not tag[:1].isalpha():
                    case.report(
                        C_LOCALE_TAG, "a locale in the open is not a BCP 47 language tag (such as en-US)"
                    )
                    return


C_OPEN_HOST: Final = RULES.rule("C-OPEN-HOST", "SHOULD", "keyword", by="client")


def other_host_than_in_sasl(case: Case10, body: Open) -> None:
    """The hostname in a client's open differs from the hostname in its sasl-init.

    Demands: If SASL or TLS has already given the name of a host, the hostname of open should be null or the
    same name.
    Source: transport.xml section performatives > open.hostname
    Evidence: the hostnames of sasl-init, of the TLS client hello and of open
    Why it matters: The server authenticates the client for the hostname of sasl-init, but opens the
    connection for the hostname of open. The client may have logged in to one host and then use another host.
    Silent when: the open or the sasl-init has no hostname, or when the sasl-init was not captured.
    How to mend it: Take the hostname of open and the hostname of sasl-init from the same setting, or leave
    the field hostname of open null.
    """
    me = case.me
    init = me.sasl.init
    if me.peer != CLIENT or init is None or init.hostname is None or body.hostname is None:
        return
    if init.hostname.lower() != body.hostname.lower():
        case.report(
            C_OPEN_HOST,
            "open.hostname differs from sasl-init.hostname; open.hostname should be null or equal to "
            "sasl-init.hostname",
        )


C_DIALECT_1239: Final = RULES.rule(
    "C-DIALECT-1239",
    "MUST NOT",
    "inferred",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:decode-error",
    octets=True,
)


def speaks_the_draft(case: Case10) -> None:
    """A peer announces AMQP 1.0 but encodes its frames by the draft of April 2011, although the other peer
    speaks the final specification. In the draft, each list begins with the field `options`.

    Demands: A peer that announces AMQP 1.0.0 must not encode its frames by the draft of April 2011.
    Source: transport.xml section version-negotiation
    Evidence: the types of the fields of a performative
    Why it matters: The draft has the same protocol header as AMQP 1.0, but in the draft each field of a
    performative stands one position later. Each of the two peers misreads every field of the other peer.
    Silent when: both peers speak the draft, or when a frame fits the final specification. The rule is also
    silent when a frame shows fewer than two signs of the draft. After a frame of the draft, no rule judges
    the frames of either peer.
    Only possible because: Other drafts of the specification existed, and the {peer} may follow another draft.
    How to mend it: Encode performatives by the final specification of October 2011, without the leading field
    `options`. Replace a library that is built for the draft.
    """
    case.me.draft = True
    reason = (
        "the frames are encoded by the draft of April 2011, in which each field stands one position later "
        "than in the final specification"
    )
    case.report(C_DIALECT_1239, reason, POSSIBLE)


def judge_open(case: Case10, body: Open) -> None:
    """Judge an open."""
    second_open(case)
    max_frame_size_below_the_floor(case, body)
    locale_that_is_no_language_tag(case, body)
    other_host_than_in_sasl(case, body)


C_REDIRECT_INFO: Final = RULES.rule("C-REDIRECT-INFO", "SHOULD", "definition")


def redirect_without_address(case: Case10, body: Close) -> None:
    """In a close with amqp:connection:redirect, a peer does not say where the other peer has to connect.

    Demands: The error of a connection redirect should give hostname, network-host and port in its info map.
    Source: transport.xml section definitions > connection-error redirect
    Evidence: a close with amqp:connection:redirect, and the entries of its info map
    Why it matters: Without hostname, network-host and port, the other peer cannot follow the redirect. The
    connection is lost.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Put hostname, network-host and port into the info map of the error
    amqp:connection:redirect.
    """
    error = body.error
    if error is None or error.condition != "amqp:connection:redirect":
        return
    keys = [] if error.info is None else [str(key) for key, _ in error.info.pairs]
    if "hostname" not in keys or "network-host" not in keys or "port" not in keys:
        case.report(
            C_REDIRECT_INFO,
            "the info map of amqp:connection:redirect lacks hostname, network-host or port",
            CERTAIN,
            {"entries": len(keys)},
        )


def judge_close(case: Case10, body: Close) -> None:
    """Judge a close."""
    redirect_without_address(case, body)


def _state(case: Case10) -> dict[str, object]:
    return {"connection_state": case.me.state}
