"""Files that somebody keeps beside the program: read whole, if they are no larger than such a file can be."""

from amqpscope.errors import ConfigurationError

__all__ = ["octets_of"]


def octets_of(path: str, most: int) -> bytes:
    """The octets of a file, at most so many. Raises ConfigurationError."""
    try:
        with open(path, "rb") as file:
            octets = file.read(most + 1)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    if len(octets) > most:
        raise ConfigurationError(f"{path}: is larger than {most} octets")
    return octets
