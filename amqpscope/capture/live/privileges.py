"""Giving up what it took to open the sockets.

What is read from then on was sent by anybody: it is read as an ordinary user. Under sudo that is who called
it; nobody is asked for where there is none to become, as in a container that has only root. In all cases no
capability is left, nor can a program that is run give one back. Listening goes on, also to an interface that
went away and came back.

Sources: capabilities(7), capget(2), PR_SET_NO_NEW_PRIVS(2const).
"""

import ctypes
import os
import struct
import sys
from typing import Final

from amqpscope.errors import CaptureError

__all__ = ["give_up"]

_CAPABILITY_VERSION: Final = 0x20080522  # with two words of each set
_NO_NEW_PRIVILEGES: Final = 38


def give_up() -> None:
    """Have no privileges from now on. Raises CaptureError if that is not so then."""
    try:
        if os.geteuid() == 0:
            _become_the_caller()
        elif os.getuid() != os.geteuid():  # installed with the set-user-ID bit of somebody else
            os.seteuid(os.getuid())
        if sys.platform == "linux":
            _drop_capabilities()
    except OSError as error:
        raise CaptureError(f"privileges cannot be dropped: {error.strerror or error}") from error


def _become_the_caller() -> None:
    """Under sudo, the user who called it, with that user's groups."""
    user, group = (_number(os.environ.get(name, "")) for name in ("SUDO_UID", "SUDO_GID"))
    if not user or group is None:
        return
    import pwd  # which not every system has

    try:
        os.initgroups(pwd.getpwuid(user).pw_name, group)
    except KeyError:  # of whom nobody knows the groups
        os.setgroups([group])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _drop_capabilities() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    none = bytes(24)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or library.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
