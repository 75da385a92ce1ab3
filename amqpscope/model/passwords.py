"""Passwords in URLs, which some peers put into addresses and names of links: never shown or stored."""

import re
from typing import Final

__all__ = ["without_password"]

_LOGIN: Final = r"(://[^/@:]*):[^@]*@"


def without_password(text: str) -> str:
    """`text`, and if there is a URL with a password in it, without that."""
    if "://" in text and "@" in text:
        return re.sub(_LOGIN, r"\1:(hidden)@", text)
    return text
