"""Spark Connect: the command and the data source with a session of a server, which gives the same rows."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES, SOME, checked, contents, written

from amqpscope.pipeline import PipelineError, session

pytest.importorskip("grpc_status", reason="needs the extra `connect`")

ONE, OTHER = CAPTURES / "rhea-transfer-before-attach.pcap", CAPTURES / "demo.pcap"


@pytest.fixture(scope="module")
def url(spark: Any) -> str:
    """A server in the Java process of the shared session."""
    spark._jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(spark._jsc.sc())
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"


def client(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """What a process of its own has done: this one has a session of another kind."""
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )


def test_lakes_have_the_same_rows(spark: Any, url: str, tmp_path: Path) -> None:
    """By both plans; and what is asked of a lake has the same answer."""
    sources = SOME[:12]
    program = (
        "import sys; from amqpscope.cli.main import run\n"
        "url, lake, *sources = sys.argv[1:]\n"
        "usual = ['--master', url, '--set-by', 'file', '--no-config', '--fail-on', 'never', '--quiet']\n"
        "for plan in ('chain', 'flow'):\n"
        "    status = run(['pipeline', 'run', *sources, '--out', lake + plan, '--plan', plan, *usual])\n"
        "    assert status == 0, status\n"
        "query = 'SELECT count(*) AS n FROM frames LATERAL VIEW explode(array(1, 2)) AS x'\n"
        "assert run(['pipeline', 'sql', lake + 'chain', query, '--master', url, '--format', 'json']) == 0\n"
        "query = 'SELECT count(*) AS n FROM open_deliveries'\n"
        "assert run(['pipeline', 'sql', lake + 'chain', query, '--master', url, '--format', 'json']) == 0\n"
    )
    done = client(program, url, tmp_path / "lake-", *sources)
    assert (done.returncode, done.stderr) == (0, "")
    rows = written(spark, tmp_path / "usual", sources, set_by="file")
    assert contents(tmp_path / "lake-chain") == rows
    assert contents(tmp_path / "lake-flow") == rows
    twice, unsettled = (json.loads(line)["n"] for line in done.stdout.splitlines()[-2:])
    assert twice == 2 * len(rows["frames"])
    assert unsettled == sum(not (row["settled_by"] or row["aborted"]) for row in rows["deliveries"]) > 0


def test_data_source(url: str) -> None:
    program = (
        "import json, sys; from amqpscope import pipeline\n"
        "spark = pipeline.session.start(sys.argv[1])\n"
        "pipeline.register(spark)\n"
        "source = spark.read.format('amqpscope').option('table', 'findings').option('setBy', 'file')\n"
        "rows = source.schema('rule string, packet bigint').load(sys.argv[2:]).collect()\n"
        "print(json.dumps(sorted(map(list, rows))))\n"
        "found = pipeline.analyse(spark, sys.argv[2:], cores=3).table('findings')\n"
        "print(json.dumps(sorted(map(list, found.select('rule', 'packet').collect()))))\n"
        "print(pipeline.session.cores(spark), pipeline.session.own_address(spark))\n"
        "for given in (['/nosuch.pcap'], sys.argv[2:3]):\n"
        "    try:\n"
        "        spark.read.format('amqpscope').option('plan', 'flow').load(given).count()\n"
        "    except Exception as error:\n"
        "        print('PipelineError' in str(error))\n"
        "try:\n"
        "    pipeline.register(spark, tls_keylog=[sys.argv[2]])\n"
        "except pipeline.PipelineError as error:\n"
        "    print(error)\n"
    )
    done = client(program, url, ONE, OTHER)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    expected = sorted([one["rule"], one["packet"]] for path in (ONE, OTHER) for one in checked(path))
    assert [json.loads(line) for line in lines[:2]] == [expected, expected]
    assert lines[2] == "2 127.0.0.1"
    assert lines[3:5] == ["True", "True"]


def test_errors_are_one_line(url: str, tmp_path: Path) -> None:
    """A setting that cannot be changed on a server, a server that speaks something else."""
    program = "import sys; from amqpscope.cli.main import run; sys.exit(int(run(sys.argv[1:])))"
    usual = ("pipeline", "run", OTHER, "--out", tmp_path / "lake", "--quiet")
    done = client(program, *usual, "--master", url, "--conf", "spark.executor.memory=1g")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"amqpscope: no Spark session at {url}: [CANNOT_MODIFY_CONFIG]")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "lake").exists()


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before pyspark is asked, which would try for ten minutes; and no token is shown."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for place in (f"127.0.0.1:{port}", f"127.0.0.1:{port}/;token=secret"):
        with pytest.raises(PipelineError) as raised:
            session.start(f"sc://{place}")
        assert str(raised.value) == f"no master answers at sc://127.0.0.1:{port}: Connection refused"
    with pytest.raises(PipelineError, match="no master answers at sc://: a host is missing"):
        session.start("sc://")


def test_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        pytest.raises(PipelineError, match=r"needs grpc: pip install 'amqpscope\[connect\]'$"),
    ):
        session.start(f"sc://127.0.0.1:{there.getsockname()[1]}/;token=secret")
