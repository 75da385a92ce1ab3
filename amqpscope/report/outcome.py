"""The outcome of one capture, in a line."""

from collections.abc import Sequence

from amqpscope.input.capture import Capture
from amqpscope.protocols import any_decoded, is_amqp
from amqpscope.report.finding_counts import FindingCounts
from amqpscope.report.protocol_names import protocol_name
from dissectors.wording import count

__all__ = ["nothing_to", "outcome"]


def outcome(capture: Capture | None, tally: FindingCounts, reason: str, others: Sequence[str] = ()) -> str:
    """`2 errors in 14 frames on 1 connection; 3 findings ignored`, the last being of `others`.

    capture: None if it could not be opened. reason: why it was not read to its end, or "". others: what
    findings there are that are not in the tally.
    """
    if capture is None or not (capture.frames or tally.counts or others):
        return f"nothing to check ({reason})" if reason else "nothing to check"
    if not (tally.counts or others or reason) and nothing_to(capture, "check"):
        return "nothing to check"
    where = f"{count(capture.frames, 'frame')} on {count(capture.spoken, 'connection')}"
    nothing = "nothing else wrong found" if others else "nothing wrong found"
    what = f"{tally.text() or nothing} in {where}"
    if others:
        what += f"; {', '.join(others)}"
    return f"{what} ({reason}: only what was read before)" if reason else what


def nothing_to(capture: Capture, purpose: str) -> str:
    """Why there is nothing to `purpose` in a capture read to its end; "" if there is."""
    protocols = capture.protocols
    if any_decoded(protocols):
        return ""
    if capture.traced:
        return (
            f"no frames to {purpose}: a log of {count(capture.traced, 'message')} that RabbitMQ has traced; "
            "`read` and `summary` show the messages"
        )
    total = sum(protocols.values())
    found = []
    for protocol, number in protocols.items():
        if protocol:
            remark = " (encrypted)" if protocol == "tls" else ""
            if is_amqp(protocol):
                remark = " (not decoded)"
            found.append(f"{number} of {protocol_name(protocol)}{remark}")
    if not total:
        what = "no TCP in it"
    elif not found:
        what = f"{total} TCP connections, none with data"
    else:
        what = f"{total} TCP connections, {', '.join(found)}"
    what = what.replace("1 TCP connections", "1 TCP connection")
    return f"no AMQP 1.0 or 0-9-1 to {purpose}: {what}"
