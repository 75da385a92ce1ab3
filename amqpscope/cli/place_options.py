"""The options of several commands that choose connections, links, addresses and a part of a capture."""

from typing import Any

import typer

__all__ = ["address_option", "connection_option", "first_option", "last_option", "link_option"]


def connection_option(
    does: str, panel: str | None = None, what: str = "the connections that match WHICH"
) -> Any:
    """does: what the command does with the connections, `Show only`. what: which of them it takes."""
    return typer.Option(
        "--connection",
        metavar="WHICH",
        rich_help_panel=panel,
        help=f"{does} {what}. WHICH is a connection's number, a connection's id from the JSON output, an "
        "ADDRESS or an ADDRESS:PORT.",
    )


def link_option(does: str, panel: str | None = None) -> Any:
    """does: `Show only frames of`."""
    return typer.Option(
        "--link",
        metavar="PATTERN",
        rich_help_panel=panel,
        help=f"{does} links with this name (* and ? are wildcards).",
    )


def address_option(does: str, panel: str, names: str) -> Any:
    """does: `Check only`. names: what an address is in AMQP 0-9-1."""
    return typer.Option(
        "--address",
        metavar="PATTERN",
        rich_help_panel=panel,
        help=f"{does} frames that name this address (* and ? are wildcards). An address is the source or "
        f"target of a link in AMQP 1.0, and {names} in AMQP 0-9-1.",
    )


def first_option(does: str, panel: str | None = None) -> Any:
    """does: `Show only frames`."""
    return typer.Option(
        "--from",
        metavar="BOUND",
        rich_help_panel=panel,
        help=f"{does} from this point on. BOUND is a packet number, +SECONDS (counted from the first frame) "
        "or an ISO 8601 time (in UTC if the time has no offset).",
    )


def last_option(does: str, panel: str | None = None) -> Any:
    """does: `Show only frames`."""
    return typer.Option(
        "--to",
        metavar="BOUND",
        rich_help_panel=panel,
        help=f"{does} up to and including this point. BOUND has the same forms as for --from.",
    )
