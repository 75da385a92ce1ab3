"""What AMQP 0-9-1 frames say for a summary.

A peer is called by its `connection_name` or `cluster_name`. Its login is over, and went well, when the server
goes on with tune; when it closes instead, it was refused. A session is a channel. What counts as an error is
a close for a reason, as `404:not-found`, and a message that is returned. Who answers a close has closed, too.
"""

from typing import Final

from amqpscope.model.records import SERVER, FrameRecord
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.tracking.amqp091.introduction import introduction
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicConsume,
    BasicGet,
    BasicPublish,
    BasicReturn,
    ChannelClose,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
)
from dissectors.amqp091.registry import REPLY_CODES, new_method
from dissectors.wire import i64

__all__ = ["WITHOUT_ERROR", "named_cause", "summarize"]

WITHOUT_ERROR: Final = (0, 200)
"""Reply-codes of a close that reports no error. pika and py-amqp close with 0."""


def summarize(summary: ConnectionOverview, record: FrameRecord, link: Link | None) -> None:
    """Take one frame of a connection."""
    frame = record.frame
    message: object = record.message
    if isinstance(message, Amqp091Message):
        summary.of(record.peer).messages += message.seen == message.announced
    if frame.kind == "body":
        summary.of(record.peer).message_octets += int(frame.payload_size)
        return
    body = frame.body
    if isinstance(body, ConnectionStart):
        summary.introduce(record.peer, introduction(frame))
    elif isinstance(body, ConnectionStartOk):
        summary.introduce(record.peer, introduction(frame))
        summary.mechanism = body.mechanism or ""
    elif isinstance(body, ConnectionTune):
        summary.sasl_outcome = "ok"
    elif isinstance(body, ConnectionClose):
        if not summary.of(record.peer).closed:
            summary.of(record.peer).closed = int(record.packet)
        if record.peer == SERVER and summary.mechanism and not summary.sasl_outcome:
            summary.sasl_outcome = "refused"
        cause = named_cause(body.class_id, body.method_id)
        _failed(summary, record, body.reply_code, body.reply_text, cause)
    elif isinstance(body, ConnectionCloseOk):
        if not summary.of(record.peer).closed:
            summary.of(record.peer).closed = int(record.packet)
    elif isinstance(body, ChannelClose):
        cause = named_cause(body.class_id, body.method_id)
        _failed(summary, record, body.reply_code, body.reply_text, cause)
    elif isinstance(body, BasicPublish):
        summary.publishes_to(body.exchange or "", body.routing_key or "")
    elif isinstance(body, (BasicConsume, BasicGet)):
        summary.takes_from(body.queue or "")
    elif isinstance(body, BasicReturn):
        _failed(summary, record, body.reply_code, body.reply_text, "")


def named_cause(class_id: i64, method_id: i64) -> str:
    """The name of the method that a close gives as its cause, its numbers if unknown, "" if it gives none."""
    if class_id < 0 or method_id < 0 or (class_id == 0 and method_id == 0):
        return ""
    method = new_method(class_id, method_id)
    return f"{class_id}.{method_id}" if method is None else method.definition().name


def _failed(
    summary: ConnectionOverview, record: FrameRecord, code: i64, text: str | None, cause: str
) -> None:
    """A reply code, what is said with it, and the method that caused it."""
    if code < 0 or code in WITHOUT_ERROR:
        return
    summary.failed(record, record.frame.name, named_code(int(code)), text or None, None, cause)


def named_code(code: int) -> str:
    """A reply code with its name: `406:precondition-failed`; only the number if it has no name."""
    known = REPLY_CODES.get(code)
    return str(code) if known is None else f"{code}:{known[0]}"
