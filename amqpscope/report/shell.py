"""Names of files as words of the commands that are shown for people to run."""

import os
import shlex

from amqpscope.report.printable import printable

__all__ = ["shell_word"]


def shell_word(path: str) -> str:
    """`path` as a shell takes it for the name of a file, and a command for no option; all of it is visible.

    What is not plainly visible stands in `$'...'`, as octets.
    """
    if path.startswith("-"):
        path = f"./{path}"
    if printable(path) == path:
        return shlex.quote(path)
    return f"$'{''.join(map(_escaped, path))}'"


def _escaped(character: str) -> str:
    """A character as it stands in `$'...'`."""
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    return "".join(f"\\{octet:03o}" for octet in os.fsencode(character))
