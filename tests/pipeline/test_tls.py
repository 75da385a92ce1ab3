"""TLS in the pipeline: rows are those of the plain conversation, and no secret is in a lake or on its way."""

from __future__ import annotations

import base64
import io
import json
import pickle
import socket
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest
from layers.test_tls import recorded, talk
from layers.test_tls_secrets import capture_of, secrets_block
from support.conversation import Conversation
from support.lakes import written
from support.tls import Ends, TlsRecording, credentials

from amqpscope.cli.main import run
from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.pipeline import PipelineError
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.rows import Rows, RowTerms
from amqpscope.pipeline.secrets import SecretsServer, give, secrets_for
from amqpscope.pipeline.source import AmqpscopeSource, register

pytest.importorskip("cryptography")

KEY = credentials("rsa")


class Made:
    """Captures of one conversation: for a key log, for a private key, with secrets in the file; and plain."""

    def __init__(self, folder: Path) -> None:
        self.recordings = [
            recorded(talk(), Ends.make("1.3")),
            recorded(talk(), Ends.make("1.2", "AES128-SHA")),
        ]
        embedded = recorded(talk(), Ends.make("1.3"))
        self.recordings.append(embedded)
        self.keylog = folder / "keys.txt"
        self.keylog.write_bytes(self.recordings[0].keylog)
        self.folder = folder / "captures"
        self.folder.mkdir()
        for number, recording in enumerate(self.recordings[:2]):
            (self.folder / f"{number}.pcap").write_bytes(capture_of(recording).pcap())
        octets = capture_of(embedded).capture.pcapng() + secrets_block(embedded.keylog)
        (self.folder / "2.pcapng").write_bytes(octets)
        plain = TlsRecording.__new__(TlsRecording)
        plain.turns = talk()
        self.plain = folder / "plain.pcap"
        self.plain.write_bytes(capture_of(plain).pcap())

    @property
    def options(self) -> dict[str, Any]:
        return {"tls_keylog": [str(self.keylog)], "tls_key": [KEY]}

    def forms(self) -> list[bytes]:
        """What would give a secret away: in octets, in hex, in base64; of the private key, its lines."""
        found = Path(KEY).read_bytes().splitlines()[1:20]
        for recording in self.recordings:
            for line in recording.keylog.splitlines():
                if line and not line.startswith(b"#"):
                    secret = bytes.fromhex(line.split()[2].decode())
                    found += [secret, secret.hex().encode(), secret.hex().upper().encode()]
                    found += [base64.b64encode(secret[at : at + 24]) for at in range(3)]
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("tls"))


def said(rows: list[dict[str, Any]], capture: str) -> list[tuple[object, ...]]:
    """What rows of a capture say of AMQP."""
    found = [row for row in rows if Path(str(row["capture"])).name == capture]
    names = ("peer", "name", "performative", "channel", "size", "rule", "certain", "message")
    return sorted(tuple(str(row.get(name)) for name in names) for row in found)


def same(rows: dict[str, list[dict[str, Any]]], plain: dict[str, list[dict[str, Any]]]) -> None:
    for table in ("frames", "findings"):
        wanted = said(plain[table], "plain.pcap")
        assert wanted
        for capture in ("0.pcap", "1.pcap", "2.pcapng"):
            assert said(rows[table], capture) == wanted, capture


def in_process(folder: Path, terms: RowTerms) -> dict[str, list[dict[str, Any]]]:
    rows = Rows(terms=terms)
    found: dict[str, list[dict[str, Any]]] = {}
    for one in capture_sets([str(folder)], "file"):
        for table, batch in read_set(one, rows):
            found.setdefault(table, []).extend(batch.to_pylist())
    for table, batch in rows.batches(True):
        found.setdefault(table, []).extend(batch.to_pylist())
    return found


def test_a_worker_asks_for_what_it_needs(made: Made) -> None:
    server = SecretsServer(tls_secrets([str(made.keylog)], [KEY]), "127.0.0.1")
    try:
        terms = RowTerms(secrets=server.address)
        same(in_process(made.folder, terms), in_process(made.plain, RowTerms()))
        sent = pickle.dumps(terms) + repr(terms).encode() + str(server.address).encode()
        assert not [form for form in made.forms() if form in sent]
        assert server.address.password.hex() not in repr(terms)
        assert repr(server.address.password) not in repr(terms)
    finally:
        server.close()


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_the_driver_finds_out_whose_secrets_a_record_needs(tmp_path: Path, version: str) -> None:
    """The ClientHello was not captured, so that a worker cannot ask for the secrets of a client random."""
    recording = recorded(talk(), Ends.make(version))
    keylog = tmp_path / "keys.txt"
    keylog.write_bytes(recording.keylog + recorded(talk()[:2], Ends.make(version)).keylog)
    d = Conversation()
    with d.missed():
        d.client.say(recording.turns[0].octets)
    for turn in recording.turns[1:]:
        (d.client if turn.direction == 0 else d.server).say(turn.octets)
    (tmp_path / "0.pcap").write_bytes(d.pcap())
    plain = TlsRecording.__new__(TlsRecording)
    plain.turns = talk()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "plain.pcap").write_bytes(capture_of(plain).pcap())
    server = SecretsServer(tls_secrets([str(keylog)]), "127.0.0.1")
    try:
        rows = in_process(tmp_path / "0.pcap", RowTerms(secrets=server.address))
        wanted = in_process(tmp_path / "plain" / "plain.pcap", RowTerms())
        assert said(rows["frames"], "0.pcap") == said(wanted["frames"], "plain.pcap") != []
    finally:
        server.close()


def test_secrets_of_a_file_are_for_its_set(made: Made) -> None:
    server = SecretsServer(None, "127.0.0.1")
    try:
        line = made.recordings[0].keylog.splitlines()[-1]
        label, random, secret = line.decode().split()
        give(server.address, 3, line)
        asked = {number: secrets_for(server.address, None, number) for number in (3, 4)}
        assert asked[3].of(bytes.fromhex(random), label) == {label: bytes.fromhex(secret)} and asked[3].given
        assert asked[4].of(bytes.fromhex(random), label) == {} and not asked[4].given
    finally:
        server.close()


def test_nobody_else_is_given_secrets(made: Made) -> None:
    server = SecretsServer(tls_secrets([str(made.keylog)], [KEY]), "127.0.0.1")
    try:
        where = (server.address.host, server.address.port)
        with pytest.raises(Exception, match="digest"):
            Client(where, authkey=b"another")
        with socket.create_connection(where) as odd:
            odd.sendall(b"\0\0\0\4????")
        assert secrets_for(server.address, None, 0).given
    finally:
        server.close()


def test_a_driver_that_is_gone() -> None:
    server = SecretsServer(Secrets(), "127.0.0.1")
    server.close()
    with pytest.raises(PipelineError, match="cannot reach this machine"):
        secrets_for(server.address, None, 0)
    # Without secrets of the user's nothing is lost.
    assert secrets_for(server.address._replace(given=False), None, 0).of(b"1" * 32, "CLIENT_RANDOM") == {}


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_rows_are_those_of_the_plain_conversation(spark: Any, tmp_path: Path, made: Made, plan: str) -> None:
    lake = tmp_path / "lake"
    rows = written(spark, lake, [made.folder], set_by="file", plan=plan, **made.options)
    same(rows, in_process(made.plain, RowTerms()))
    for path in lake.rglob("*"):
        if path.is_file():
            octets = path.read_bytes()
            assert not [form for form in made.forms() if form in octets], path
    shown = str(rows)
    assert not [form for form in made.forms() if form.decode("latin-1") in shown or repr(form)[2:-1] in shown]


@pytest.mark.parametrize("key", [True, False])
def test_the_command(lent: None, tmp_path: Path, made: Made, key: bool) -> None:
    line = ["pipeline", "run", str(made.folder / "1.pcap"), "--out", str(tmp_path / "lake"), "--quiet"]
    shown = io.StringIO()
    with redirect_stdout(shown), redirect_stderr(shown):
        status = run([*line, *(["--tls-key", KEY] if key else [])])
    assert int(status) == (1 if key else 3), shown.getvalue()
    assert not [form for form in made.forms() if form.decode("latin-1") in shown.getvalue()]


def found_in(spark: Any, made: Made, options: dict[str, str]) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Rows that the data source gives, and all that Spark says of its plans."""
    explained = io.StringIO()
    rows = {}
    for table in ("frames", "findings"):
        frame = spark.read.format("amqpscope").options(table=table, setBy="file", **options)
        frame = frame.load(str(made.folder))
        rows[table] = [row.asDict(recursive=True) for row in frame.collect()]
        with redirect_stdout(explained):
            frame.explain(extended=True)
            frame.explain(mode="formatted")
        explained.write(str(frame._jdf.queryExecution().toString()))
    return rows, explained.getvalue()


@pytest.mark.parametrize("way", ["options", "list", "register"])
def test_the_data_source(spark: Any, made: Made, way: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The rows of the plain conversation. No secret is in a plan, in a row or in what is logged."""
    options = {}
    keylog = str(made.keylog)
    if way == "register":
        register(spark, **made.options)
    else:
        register(spark)
        options = {"tlsKeylog": keylog if way == "options" else json.dumps([keylog]), "tlsKey": KEY}
    try:
        rows, explained = found_in(spark, made, options)
    finally:
        register(spark)
    same(rows, in_process(made.plain, RowTerms()))
    explained += str(rows) + "".join(capfd.readouterr())
    assert not [
        form for form in made.forms() if form.decode("latin-1") in explained or repr(form)[2:-1] in explained
    ]


def test_a_data_source_that_misses_its_keys(spark: Any, made: Made, tmp_path: Path) -> None:
    register(spark)
    source = spark.read.format("amqpscope").option("tlsKeylog", str(tmp_path / "nosuch"))
    with pytest.raises(Exception, match=r"--tls-keylog .*nosuch: No such file"):
        source.load(str(made.folder)).count()
    with pytest.raises(PipelineError, match="nosuch: No such file"):
        register(spark, tls_keylog=[str(tmp_path / "nosuch")])


def test_a_reader_travels_without_secrets(made: Made) -> None:
    """What is sent to the workers names files, and has nothing of what is in them."""
    source = AmqpscopeSource({"path": str(made.folder), "tlskeylog": str(made.keylog), "tlskey": KEY})
    reader = source.reader(source.schema())
    sent = pickle.dumps((reader, reader.partitions()))
    assert str(made.keylog).encode() in sent and KEY.encode() in sent
    assert not [form for form in made.forms() if form in sent]
