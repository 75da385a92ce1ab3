"""What goes wrong on our side of the wire: the user's input, not the traffic. Bad traffic never raises."""


class AmqpscopeError(Exception):
    """Base of all. Its text is one line for the user."""


class CaptureError(AmqpscopeError):
    """A capture that cannot be opened, or is none."""


class NotPermitted(CaptureError):
    """There is no permission to capture packets as they pass."""


class NotPossible(CaptureError):
    """There is no way to do it here."""


class OutputError(AmqpscopeError):
    """A file that cannot be written."""


class FilterError(AmqpscopeError):
    """A selection of frames that cannot be understood."""


class ConfigurationError(AmqpscopeError):
    """A configuration, or a baseline, that cannot be read or understood."""
