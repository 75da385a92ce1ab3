"""All that watches a connection of AMQP 0-9-1."""

from amqpscope.diagnoses.amqp091.channels import ChannelWatch
from amqpscope.diagnoses.amqp091.habits import HabitWatch
from amqpscope.diagnoses.amqp091.refusals import Refusal091Watch
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.watch import Watch091
from amqpscope.tracking.amqp091.conversation import Conversation091

__all__ = ["watches"]


def watches(notebook: Notebook, conversation: Conversation091) -> list[Watch091]:
    """The watches of one connection, which the conversation follows."""
    return [
        ChannelWatch(notebook, conversation),
        HabitWatch(notebook, conversation),
        Refusal091Watch(notebook, conversation),
    ]
