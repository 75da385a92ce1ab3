"""What keeps the pipeline from running: the user's to change. A capture that cannot be read is none of it."""

from amqpscope.errors import AmqpscopeError

__all__ = ["FilesChanged", "PipelineError"]


class PipelineError(AmqpscopeError):
    """Its text is one line for the user."""


class FilesChanged(PipelineError):
    """Captures were removed or overwritten while they were read: the next try may succeed."""
