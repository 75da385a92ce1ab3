"""All that watches a connection of AMQP 1.0."""

from typing import Final

from amqpscope.diagnoses.amqp10.links import LinkWatch
from amqpscope.diagnoses.amqp10.redelivery import RedeliveryWatch
from amqpscope.diagnoses.amqp10.refusals import RefusalWatch
from amqpscope.diagnoses.amqp10.requests import RequestWatch
from amqpscope.diagnoses.amqp10.resuming import ResumeWatch
from amqpscope.diagnoses.amqp10.services import ServiceWatch
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.several import Several
from amqpscope.diagnoses.watch import ProtocolWatches
from amqpscope.tracking.amqp10.conversation import Conversation10
from dissectors.amqp10.performatives import Open
from dissectors.interface import Frame
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["Watches10"]

# mypyc: null object, of connections to which nobody listens. Nothing appends to it.
_NONE: Final[list[Watch10]] = []


class Watches10(ProtocolWatches):
    """Those of one connection. conversation: what follows it already; None to follow it here."""

    def __init__(self, notebook: Notebook, several: Several, conversation: Conversation10 | None) -> None:
        super().__init__()
        self.notebook: Notebook = notebook
        self.several: Several = several
        self.spoken: Conversation10 = Conversation10(False) if conversation is None else conversation
        self.spoken.reuse_deliveries(conversation is None)
        self.conversation = self.spoken
        self.follows = conversation is None
        self.listening = False
        # Whether numbers are wanted, which are counted from the first session on.
        self.measured: bool = False
        self.listeners: list[Watch10] = _NONE

    def measure(self) -> None:
        self.measured = True
        # Numbers keep deliveries.
        self.spoken.reuse_deliveries(False)

    def listen(self, frame: Frame) -> None:
        """Listen from the first frame on that is about more than the opening.

        Of very many connections at a time most have said no more.
        """
        body = frame.body
        if body is None or isinstance(body, (Open, ProtocolHeader)) or frame.kind == "sasl":
            return
        self.listening = True
        self.listeners = self._watches()
        if self.measured:
            from amqpscope.diagnoses.amqp10.numbers import Numbers10  # only `summary` has numbers

            numbers = Numbers10(self.notebook)
            numbers.listen_behind(self.listeners)
            self.listeners.append(numbers)
            self.numbers = numbers
        for watch in self.listeners:
            self.spoken.subscribe(watch)

    def _watches(self) -> list[Watch10]:
        """In the order in which they take an event."""
        notebook, several, conversation = self.notebook, self.several, self.spoken
        links = LinkWatch(notebook)
        refusals = RefusalWatch(notebook, several, conversation)
        services = ServiceWatch(notebook, conversation, links, refusals)
        return [
            services,
            links,
            refusals,
            RequestWatch(notebook, conversation),
            RedeliveryWatch(notebook, conversation),
            ResumeWatch(notebook, several, conversation),
        ]

    def lost(self, until: i64) -> None:
        for watch in self.listeners:
            watch.lost(until)

    def lasting(self, until: i64) -> None:
        for watch in self.listeners:
            watch.lasting(until)

    def finish(self, accused: set[str]) -> None:
        for watch in self.listeners:
            watch.finish(accused)

    def dismiss(self) -> None:
        self.spoken.dismiss()
