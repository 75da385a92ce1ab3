"""`amqpscope proxy`: forward connections to a server, and show what is said on them, with verdicts."""

import functools
from typing import Annotated

import typer

from amqpscope.capture.proxy.address import is_loopback, parse_address, show_address
from amqpscope.capture.proxy.encryption import client_context, server_context
from amqpscope.capture.proxy.faults import parse_fault
from amqpscope.capture.proxy.source import MAX_CONNECTIONS, ProxySource
from amqpscope.cli.live_options import LiveOptions
from amqpscope.cli.live_run import watch_live
from amqpscope.cli.option_groups import with_options
from amqpscope.errors import FilterError

__all__ = ["EPILOG", "proxy"]

_FORWARDED = "What is forwarded"
_TLS = "TLS of the proxy"

_PORT = 5672
_TLS_PORT = 5671
_LISTEN_PORT = 5673
_LISTEN = f"127.0.0.1:{_LISTEN_PORT}"
_MOST = 10_000

EPILOG = """\b
Point the client at the address of --listen. The proxy forwards all octets
unchanged. Like the command `sniff`, the proxy shows and checks the frames.
The proxy needs no privileges. A recording (-w) looks like a capture of a TCP
connection between the client and the server. If the proxy terminates TLS, the
recording contains the decrypted octets.

\b
Examples:
  amqpscope proxy --to rabbit:5672
  amqpscope proxy --listen 127.0.0.1:5700 --to rabbit -w seen.pcapng --quiet
  amqpscope proxy --to broker.example.com:5671 --to-tls
  amqpscope proxy --to broker:5671 --to-tls --to-ca ca.pem \\
    --listen-tls proxy.pem --listen-key proxy.key

\b
Exit status: 0 fine, 1 findings that make the command fail, 2 a failure (the
address is in use), 3 no AMQP 1.0 or 0-9-1 was seen, or only encrypted AMQP,
130 interrupted (Ctrl-C), 143 terminated.
"""


@with_options
def proxy(
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="HOST:PORT",
            rich_help_panel=_FORWARDED,
            show_default=False,
            help=(
                f"Forward to this server. If you give no port, the port is {_PORT}, or {_TLS_PORT} with "
                "--to-tls."
            ),
        ),
    ],
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            rich_help_panel=_FORWARDED,
            help="Accept connections at this address. With port 0, the system chooses a free port.",
        ),
    ] = _LISTEN,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote",
            rich_help_panel=_FORWARDED,
            help="Allow a --listen address that other machines can reach. Everybody who reaches the "
            "address can use the server through the proxy.",
        ),
    ] = False,
    connections: Annotated[
        int,
        typer.Option(
            "--connections",
            metavar="N",
            rich_help_panel=_FORWARDED,
            help="Forward at most N connections at the same time, and refuse further connections.",
        ),
    ] = MAX_CONNECTIONS,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="FAULT",
            rich_help_panel=_FORWARDED,
            show_default=False,
            help="Cause this fault on each connection, to test a client: 'delay FRAME TIME', "
            "'drop-connection after N FRAMES', 'split OCTETS' or 'throttle SIZE/s'. In a recording, a "
            "comment describes each fault. The option may be repeated.",
        ),
    ] = None,
    to_tls: Annotated[
        bool,
        typer.Option(
            "--to-tls",
            rich_help_panel=_TLS,
            help="Use TLS on the connections to the server. The server must have a certificate for the "
            "name in --to, and the system must trust the certificate.",
        ),
    ] = False,
    to_ca: Annotated[
        str | None,
        typer.Option(
            "--to-ca",
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help=(
                "Trust the certificates in this PEM file instead of the certificates that the system trusts."
            ),
        ),
    ] = None,
    to_cert: Annotated[
        str | None,
        typer.Option(
            "--to-cert",
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help="Show this client certificate (PEM) to the server.",
        ),
    ] = None,
    to_key: Annotated[
        str | None,
        typer.Option(
            "--to-key",
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help=(
                "Read the private key of the client certificate from this file (PEM). The option is needed "
                "if the file of --to-cert does not contain the key."
            ),
        ),
    ] = None,
    to_insecure: Annotated[
        bool,
        typer.Option(
            "--to-insecure",
            rich_help_panel=_TLS,
            help="Accept every certificate of the server. An attacker between the proxy and the server can "
            "then read and change all data.",
        ),
    ] = False,
    listen_tls: Annotated[
        str | None,
        typer.Option(
            "--listen-tls",
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help=(
                "Use TLS with the clients, and show them this certificate chain (PEM). The clients must "
                "trust the certificate."
            ),
        ),
    ] = None,
    listen_key: Annotated[
        str | None,
        typer.Option(
            "--listen-key",
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help=(
                "Read the private key of the proxy's certificate from this file (PEM). The option is "
                "needed if the file of --listen-tls does not contain the key."
            ),
        ),
    ] = None,
    live: LiveOptions,
) -> int:
    """Forward all octets between clients and a server, and show and check the frames."""
    target = parse_address("--to", to, _TLS_PORT if to_tls else _PORT)
    place = parse_address("--listen", listen, _LISTEN_PORT)
    if not allow_remote and not is_loopback(place[0]):
        raise FilterError(
            f"--listen {show_address(*place)}: other machines can reach this address; add --allow-remote "
            "if they may use the server through the proxy"
        )
    if not 1 <= connections <= _MOST:
        raise FilterError(f"--connections {connections}: must be from 1 to {_MOST}")
    for option, value in (("--to-ca", to_ca), ("--to-cert", to_cert), ("--to-insecure", to_insecure)):
        if value and not to_tls:
            raise FilterError(f"{option}: needs --to-tls")
    if to_ca is not None and to_insecure:
        raise FilterError("--to-insecure: cannot be combined with --to-ca")
    for option, key, needed, certificate in (
        ("--to-key", to_key, "--to-cert", to_cert),
        ("--listen-key", listen_key, "--listen-tls", listen_tls),
    ):
        if key is not None and certificate is None:
            raise FilterError(f"{option}: needs {needed}")
    opened = functools.partial(
        ProxySource,
        place,
        target,
        to_tls=client_context(to_ca, to_cert, to_key, to_insecure) if to_tls else None,
        listen_tls=None if listen_tls is None else server_context(listen_tls, listen_key),
        connections=connections,
        faults=[parse_fault(one) for one in fault or []],
    )
    return watch_live(live, opened)
