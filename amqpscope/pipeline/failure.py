"""What keeps the pipeline from running: the user's to change. A capture that cannot be read is none of it."""

from amqpscope.errors import AmqpscopeError

__all__ = ["PipelineError"]


class PipelineError(AmqpscopeError):
    """Its text is one line for the user."""
