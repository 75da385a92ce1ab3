"""All that watches a connection of AMQP 1.0."""

from amqpscope.diagnoses.amqp10.links import LinkWatch
from amqpscope.diagnoses.amqp10.redelivery import RedeliveryWatch
from amqpscope.diagnoses.amqp10.refusals import RefusalWatch
from amqpscope.diagnoses.amqp10.requests import RequestWatch
from amqpscope.diagnoses.amqp10.resuming import ResumeWatch
from amqpscope.diagnoses.amqp10.services import ServiceWatch
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.several import Several
from amqpscope.diagnoses.watch import Watch10
from amqpscope.tracking.amqp10.conversation import Conversation10

__all__ = ["watches"]


def watches(notebook: Notebook, several: Several, conversation: Conversation10) -> list[Watch10]:
    """The watches of one connection that is followed, in the order in which they take an event."""
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
