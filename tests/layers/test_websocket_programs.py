"""rhea over WebSocket, plain and in TLS, recorded now: frames are those of the same dialogue over TCP.

It needs Node with the packages rhea and ws, where `require` finds them (NODE_PATH).
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

import pytest
from support.relay import PATIENCE, Relay
from support.sampling import thorough
from support.tls import Turn, credentials

from amqpscope.layers.secrets import Secrets

from .test_tls_server_keys import Frame, frames

SERVER = """
const [scheme, deflate, pem, keys] = process.argv.slice(1);
const fs = require('fs');
const container = require('rhea').create_container({id: 'server'});
container.on('message', context => context.delivery.accept());
container.on('sender_open', context => {
  context.sender.set_source(context.sender.source);
  let sent = 0;
  const next = () => { if (sent++ < 3) context.sender.send({body: 'answer '.repeat(300)}); };
  context.sender.on('accepted', next);
  context.sender.once('sendable', next);
});
const say = port => console.log(port);
if (scheme === 'tcp') {
  const server = container.listen({port: 0, host: '127.0.0.1'});
  server.on('listening', () => say(server.address().port));
} else {
  const secure = () => require('https').createServer({cert: fs.readFileSync(pem), key: fs.readFileSync(pem)});
  const server = scheme === 'wss' ? secure() : require('http').createServer();
  server.on('keylog', line => fs.appendFileSync(keys, line));
  const WebSocket = require('ws');
  const sockets = new WebSocket.Server({
    server, perMessageDeflate: deflate ? {threshold: 0, serverNoContextTakeover: deflate === 'fresh'} : false,
    handleProtocols: offered => [...offered][0],
  });
  sockets.on('connection', socket => container.websocket_accept(socket));
  server.listen(0, '127.0.0.1', () => say(server.address().port));
}
"""

CLIENT = """
const [scheme, deflate, port] = process.argv.slice(1);
const container = require('rhea').create_container({id: 'client'});
let sent = 0, received = 0;
const next = context => {
  if (sent++ < 5) context.sender.send({body: 'order ' + sent + '. '.repeat(400)});
  else context.connection.close();
};
container.on('connection_open', context => {
  context.connection.open_receiver({name: 'in', source: 'answers', credit_window: 10, autoaccept: true});
});
container.on('message', context => {
  if (++received === 3) context.connection.open_sender({name: 'out', target: 'orders'});
});
container.once('sendable', next);
container.on('accepted', next);
container.on('connection_close', () => process.exit(0));
container.on('disconnected', () => process.exit(0));
const details = {container_id: 'client', reconnect: false};
if (scheme === 'tcp') {
  container.connect({...details, port: Number(port), host: '127.0.0.1'});
} else {
  const options = {rejectUnauthorized: false, perMessageDeflate: deflate ? {threshold: 0} : false};
  const connect = container.websocket_connect(require('ws'));
  const url = scheme + '://127.0.0.1:' + port;
  container.connect({...details, connection_details: connect(url, ['amqp', 'AMQPWSB10'], options)});
}
"""


CASES = [(scheme, deflate) for scheme in ("ws", "wss") for deflate in ("", "kept", "fresh")]


@functools.cache
def installed() -> bool:
    if shutil.which("node") is None:
        return False
    line = ["node", "-e", "require('rhea'); require('ws')"]
    return subprocess.run(line, capture_output=True, timeout=PATIENCE).returncode == 0


def recorded_by(folder: Path, scheme: str, deflate: str) -> tuple[list[Turn], bytes]:
    """What rhea says to rhea, and the secrets of its TLS."""
    keys = folder / "keys.txt"
    keys.write_bytes(b"")
    line = ["node", "-e", SERVER, scheme, deflate, credentials("rsa") if scheme == "wss" else "", str(keys)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            with Relay(port) as relay:
                client = ["node", "-e", CLIENT, scheme, deflate, str(relay.port)]
                done = subprocess.run(client, capture_output=True, text=True, timeout=PATIENCE)
                assert done.returncode == 0, done.stderr
        finally:
            server.kill()
    return relay.turns, keys.read_bytes()


@functools.cache
def plain(folder: Path) -> list[Frame]:
    found, why = frames(recorded_by(folder, "tcp", "")[0], None)
    assert not why and len(found) > 30
    return found


def shapes(found: list[Frame]) -> list[list[tuple[str, int]]]:
    """Names and sizes of the frames of each direction."""
    return [[(name, size) for of, name, _, size in found if of == direction] for direction in (0, 1)]


@pytest.mark.parametrize(("scheme", "deflate"), CASES if thorough() else [("ws", "kept"), ("wss", "")])
def test_rhea(tmp_path_factory: pytest.TempPathFactory, scheme: str, deflate: str) -> None:
    if not installed():
        pytest.skip("Node with rhea and ws is not installed")
    if scheme == "wss":
        pytest.importorskip("cryptography")
    turns, keylog = recorded_by(tmp_path_factory.mktemp("rhea"), scheme, deflate)
    clear = plain(tmp_path_factory.getbasetemp())
    secrets = Secrets()
    secrets.take(keylog)
    found, why = frames(turns, secrets)
    assert not why and shapes(found) == shapes(clear)
    for size in (1, 3, 7, 61):
        odd = [
            Turn(turn.direction, turn.octets[at : at + size])
            for turn in turns
            for at in range(0, len(turn.octets), size)
        ]
        assert frames(odd, secrets) == (found, "")
