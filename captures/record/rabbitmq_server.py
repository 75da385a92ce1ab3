"""A RabbitMQ node with the AMQP 1.0 plugin, all of it in one folder and on one loopback address.

Runs in the foreground until it is terminated (or for some time) and then ends the node and the port
mapper it started; both have ports of their own, so that a RabbitMQ already on the machine is not touched.
The folder gets a program `control`: rabbitmqctl for this node, for clients whose scenario needs the operator.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

LIFETIME = 120.0
STOP_SECONDS = 15.0
PROGRAMS = "/usr/lib/rabbitmq/bin"  # Debian's: the ones on PATH are wrappers that change the user


def program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([PROGRAMS, os.environ.get("PATH", os.defpath)]))
    if found is None:
        sys.exit(f"{name} is not installed")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def environment_of(folder: Path, address: str, plugins: str, settings: list[str]) -> dict[str, str]:
    """Writes the node's configuration and returns the environment that points to it."""
    (folder / "rabbitmq.conf").write_text(
        "cluster_name = captures\ndefault_user = shop\ndefault_pass = made-up-for-captures\n"
        "loopback_users = none\n"
    )
    (folder / "enabled_plugins").write_text(f"[{plugins}].\n")
    loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
    chosen = ["-rabbit " + setting.replace("=", " ", 1) for setting in settings]
    return {
        **os.environ,
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(free_port()),
        "RABBITMQ_NODENAME": "rabbit@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": address,
        "RABBITMQ_NODE_PORT": "5672",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join([loopback, *chosen]),
        "RABBITMQ_CTL_ERL_ARGS": loopback,
    }


def write_control(folder: Path, environment: dict[str, str], program: str) -> None:
    """Makes `folder`/control, which runs rabbitmqctl with the node's environment."""
    named = [name for name in environment if name == "HOME" or name.startswith(("RABBITMQ_", "ERL_"))]
    exports = "".join(f"export {name}={shlex.quote(environment[name])}\n" for name in named)
    control = folder / "control"
    control.write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(program)} "$@"\n')
    control.chmod(0o700)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--listen", required=True, help="loopback address; the port is 5672")
    options.add_argument("--folder", type=Path, required=True, help="for the node's files")
    options.add_argument("--plugins", default="rabbitmq_amqp1_0", help="enabled plugins, with commas between")
    options.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="of the application rabbit"
    )
    options.add_argument("--lifetime", type=float, default=LIFETIME, help="seconds after which it ends")
    given = options.parse_args()
    environment = environment_of(given.folder, given.listen, given.plugins, given.setting)
    server, control, mapper = program("rabbitmq-server"), program("rabbitmqctl"), program("epmd")
    write_control(given.folder, environment, control)
    node = subprocess.Popen([server], env=environment, cwd=given.folder, start_new_session=True)

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        node.wait(given.lifetime)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if node.poll() is None:
            try:
                subprocess.run(
                    [control, "stop"],
                    env=environment,
                    cwd=given.folder,
                    timeout=STOP_SECONDS,
                    capture_output=True,
                )
                node.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, signal.SIGKILL)  # the script, and the virtual machine that it runs
                node.wait()
        subprocess.run([mapper, "-kill"], env=environment, timeout=STOP_SECONDS, capture_output=True)


if __name__ == "__main__":
    main()
