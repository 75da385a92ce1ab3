"""AMQP 1.0: which later performatives answer one, or come of it."""

from amqpscope.model.records import FrameRecord
from amqpscope.why.watch import AnswerWatch
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Transfer,
)

__all__ = ["Watch10", "among"]


class Watch10(AnswerWatch):
    """Looks for what answers a performative, from either peer.

    partner: the channel of the session's other half, None while it is not known. name, receiver: of the link
    it is on, and what its sender is there. handle: by which the other end has it attached.
    """

    def __init__(
        self, record: FrameRecord, partner: int | None, name: str, receiver: bool, handle: int | None
    ) -> None:
        super().__init__()
        self._direction = int(record.direction)
        self._channel = int(record.frame.channel)
        self._body = record.frame.body
        self._kind = record.frame.kind
        self._partner = partner
        self._name = name
        self._receiver = receiver
        self._handle = handle
        # A peer has ended the session, or closed the connection.
        self._ended = False
        self._delivery = self._body.delivery_id if isinstance(self._body, Transfer) else None

    def see(self, record: FrameRecord) -> None:
        body = record.frame.body
        own = int(record.direction) == self._direction
        if isinstance(body, Close):
            self._closed("the connection is closed", body.error, record, own)
            return
        if own:
            self._own(record, body)
        else:
            self._theirs(record, body)

    def _closed(self, what: str, error: Error | None, record: FrameRecord, own: bool) -> None:
        """A close, or an end: the other peer may send one with an error before it has the sender's own."""
        if not self._ended or error is not None:
            self.add(what + (" with an error" if error is not None else ""), record)
        self._ended = True
        self.over = self.over or not own

    def _own(self, record: FrameRecord, body: object) -> None:
        """Its sender goes on."""
        mine = self._body
        if int(record.frame.channel) != self._channel:
            return
        if self._ended:
            self.over = self.over or isinstance(body, Begin)
        elif isinstance(mine, Transfer) and isinstance(body, Transfer) and body.handle == mine.handle:
            if mine.more and body.delivery_id in (None, mine.delivery_id):
                self._body = body
                if not body.more:
                    self.add("ends the delivery", record)
        elif isinstance(mine, Transfer) and isinstance(body, Disposition):
            if self._delivery is not None and not body.role and _names(body, self._delivery):
                self.add("its sender's word on the delivery", record, bool(body.settled))
        elif isinstance(body, Attach) and isinstance(mine, (Transfer, Flow, Detach)) and not self._name:
            if body.handle == mine.handle:
                self._name, self._receiver = body.name or "", body.role is True
                self.add("its sender attaches a link by this handle only now", record)
        elif isinstance(body, End) and not isinstance(mine, End):
            self.add("its sender ends the session", record)
            self._ended = True

    def _theirs(self, record: FrameRecord, body: object) -> None:
        """The other peer answers."""
        mine = self._body
        if self._kind == "header" and record.frame.kind == "header":
            self.add("the answer", record, last=True)
        elif self._kind == "sasl" and record.frame.kind in ("sasl", "header"):
            self.add("the answer", record, last=True)
        elif isinstance(mine, Open) and isinstance(body, Open):
            self.add("the answer", record, last=True)
        elif isinstance(body, Begin) and body.remote_channel == self._channel:
            self._partner = int(record.frame.channel)
            if isinstance(mine, Begin):
                self.add("the answer", record, last=True)
        if self._partner is None or int(record.frame.channel) != self._partner:
            return
        if isinstance(body, End):
            what = "the answer" if isinstance(mine, End) else "the session is ended"
            self._closed(what, body.error, record, False)
        elif isinstance(body, Attach) and body.name == self._name and (body.role is True) != self._receiver:
            self._handle = body.handle
            if isinstance(mine, Attach):
                self.add("the answer", record)
        elif isinstance(body, Detach) and self._handle is not None and body.handle == self._handle:
            what = "the answer" if isinstance(mine, Detach) else "the link is detached"
            self.add(what + (" with an error" if body.error is not None else ""), record, last=True)
        elif isinstance(body, Disposition) and isinstance(mine, Transfer) and self._delivery is not None:
            if body.role and _names(body, self._delivery):
                what = "settles the delivery" if body.settled else "the receiver's word on the delivery"
                self.add(what, record, bool(body.settled))
        elif isinstance(mine, Flow) and isinstance(body, Transfer) and mine.link_credit:
            if body.handle == self._handle:
                self.add("the first transfer on the link after it", record, last=True)
        elif isinstance(mine, Flow) and isinstance(body, Flow) and (mine.echo or mine.drain):
            if mine.handle is None or body.handle == self._handle:
                self.add("the flow in answer", record, last=True)


def _names(body: Disposition, number: int) -> bool:
    """Whether a disposition names a delivery."""
    if body.first is None:
        return False
    return among(number, body.first, body.first if body.last is None else body.last)


def among(number: int, first: int, last: int) -> bool:
    """Whether a delivery-id lies between two others, which wrap."""
    size = (last - first) & 0xFFFFFFFF
    return (number - first) & 0xFFFFFFFF <= size < 0x80000000
