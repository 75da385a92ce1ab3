"""Addresses as people write them: `rabbit:5672`, `127.0.0.1:5673`, `[::1]:5672`."""

import ipaddress
import re

from amqpscope.errors import FilterError

__all__ = ["is_loopback", "parse_address", "show_address"]

_ADDRESS = re.compile(r"(?:\[([^\]\s]+)\]|([^:\s\[\]]+))(?::([0-9]{1,5}))?")


def parse_address(option: str, text: str, port: int) -> tuple[str, int]:
    """Host and port; `port` if the text names none. Raises FilterError, which names the option."""
    parts = _ADDRESS.fullmatch(text)
    number = -1 if parts is None else int(parts[3] or port)
    # A port alone would be taken for a host.
    if parts is None or number > 65535 or text.isdecimal():
        raise FilterError(f"{option} {text}: must be HOST:PORT, for example 127.0.0.1:{port} or [::1]:{port}")
    return parts[1] or parts[2], number


def show_address(host: str, port: int) -> str:
    """The text that `parse_address` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
