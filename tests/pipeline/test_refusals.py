"""What cannot be written or read: one line of our own words, exit status 2, and never another program's."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.commands import amqpscope
from support.lakes import CAPTURES

from amqpscope.pipeline.inputs import Trouble, trouble_of
from amqpscope.pipeline.refusals import in_words

DEMO = CAPTURES / "demo.pcap"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems have other words")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refusals") / "lake"
    command = [sys.executable, "-P", "-m", "amqpscope", "pipeline", "run", DEMO, "--engine", "pool", "-q"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, "--out", path], check=True, capture_output=True, env=environment)
    return path


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> Path:
    """A lake to be damaged."""
    shutil.copytree(written, tmp_path / "lake")
    return tmp_path / "lake"


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The line that a command fails with."""
    result = amqpscope(capsys, "pipeline", *arguments)
    assert (result.status, result.err.count("\n")) == (2, 1)
    return result.err.removeprefix("amqpscope: ").rstrip("\n")


def test_where_no_lake_can_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("no lake")
    is_file = "this is a file, or is below one, and a lake is a directory"
    long, wrong = tmp_path / ("x" * 300), tmp_path / "a\nb"
    for out, line in (
        (file, f"{file}: {is_file}"),
        (file / "sub", f"{file / 'sub'}: {is_file}"),
        (long, f"{long}: the name is too long"),
        (wrong, f"{tmp_path}/a\\nb: the path of a lake cannot have control characters"),
        (
            "http://h/lake",
            "http://h/lake: such a URL is not known: give a directory, or a URL that begins with ",
        ),
        (
            "s3://b/lake?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1",
            "s3://b/lake: the object store does not answer (",
        ),
    ):
        assert refused(capsys, "run", DEMO, "--out", out, "--engine", "pool", "-q").startswith(line)
    assert refused(capsys, "compact", file) == f"{file}: {is_file}"


@pytest.mark.parametrize("append", [(), ("--append",)])
def test_what_cannot_be_written(tmp_path: Path, append: tuple[str, ...]) -> None:
    """A file that may not be as long as it has to be, as on a disk that is full."""
    command = [sys.executable, "-P", "-m", "amqpscope", "pipeline", "run", DEMO, "--engine", "pool", "-q"]
    ran = subprocess.run(
        [*command, "--out", "lake", *append],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.endswith("the tables cannot be written: File too large\n")


def test_a_lake_with_damaged_files(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who asks what is in them learns which one it is; other tables answer."""
    (part,) = lake.glob("frames/*/*/*.parquet")
    place = part.relative_to(lake)
    octets = part.read_bytes()
    frames, links = "SELECT count(*) AS n FROM frames", "SELECT count(*) AS n FROM links"
    part.write_bytes(octets[:100] + bytes(byte ^ 255 for byte in octets[100:]))
    assert (
        refused(capsys, "sql", lake, frames)
        == f"{lake}: the table frames cannot be read: this file is damaged: {part}"
    )
    part.write_bytes(octets[:500])
    for command in (("sql", lake, frames), ("sql", lake, frames, "--format", "json")):
        assert refused(capsys, *command) == f"{lake}: a file of the table frames is damaged: {place}"
    part.unlink()
    assert refused(capsys, "sql", lake, frames) == f"{lake}: a file of the table frames is gone: {place}"
    assert amqpscope(capsys, "pipeline", "sql", lake, links).out == "n\n2\n"
    (part,) = lake.glob("files/*.parquet")
    part.write_bytes(b"")
    command = ("run", DEMO, "--out", lake, "--append", "--engine", "pool", "-q")
    assert refused(capsys, *command) == f"{lake}: this file is damaged: {part}"
    part.unlink()
    assert refused(capsys, *command) == f"{lake}: No such file or directory: {part}"


def test_a_lake_with_damaged_logs(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No table is taken for one without rows."""
    query = ("sql", lake, "SELECT count(*) AS n FROM frames")
    log = lake / "frames" / "_delta_log"
    (log / f"{1:020}.json").write_text("garbage")
    assert refused(capsys, *query).startswith(f"{lake}/frames: the log of this table is damaged (")
    (log / f"{1:020}.json").unlink()
    assert refused(capsys, *query).startswith(f"{lake}/frames: the log of this table is damaged (")
    shutil.rmtree(lake / "frames")
    assert refused(capsys, *query) == f"{lake}/frames: version 1 of the table is gone"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EACCES, "Failed stat()ing path 'lake/x'. Detail"), "permission denied: lake/x"),
        (OSError(errno.EACCES, "Failed to open local file 'lake/_lease-1'"), "permission denied"),
        (OSError(errno.EACCES, "Failed renaming 'lake/_staging/a' to 'lake/a'"), "permission denied: lake/a"),
        (OSError(errno.ENOSPC, "Error writing bytes to file"), "no space is left on the file system"),
        (OSError(errno.EROFS, "Cannot create directory 'lake/x'"), "the file system is read-only"),
        (
            OSError("Generic error\n  \x1b[31m↳\x1b[0m Unable\n  \x1b[31m↳\x1b[0m Full (os error 28)\n"),
            "no space is left on the file system",
        ),
        (Exception('Local path "x" does not exist\nError: Os { code: 13, kind: P }'), "permission denied"),
        (
            OSError("When reading: AWS Error ACCESS_DENIED during PutObject operation: No; Details: secret"),
            "the object store refuses access: check the credentials, and what they allow",
        ),
        (OSError("x: AWS Error NO_SUCH_BUCKET during HeadBucket operation: None"), "there is no such bucket"),
        (
            OSError("x: AWS Error STRANGE during ListObjectsV2 operation: None"),
            "the object store refuses ListObjectsV2 (STRANGE)",
        ),
        (
            OSError("google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with 'CURL error [6]=x"),
            "the object store does not answer",
        ),
        (
            OSError("google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token"),
            "no credentials for the object store were found",
        ),
        (OSError("google::cloud::Status(STRANGE: x)"), "the object store refuses this (STRANGE)"),
        (
            pa.ArrowInvalid("Unable to load libjvm"),
            "hdfs:// needs Hadoop and Java on this machine, and libjvm was not found",
        ),
        (pa.ArrowInvalid(""), "ArrowInvalid"),
        (pa.ArrowInvalid("\nfirst\nsecond"), "first"),
    ],
)
def test_words(error: Exception, line: str) -> None:
    assert in_words(error, "lake") == line


def test_queries_that_end_early(written: Path) -> None:
    """Whatever ends an answer, nothing but its reason is printed: also not that DuckDB was not closed."""
    command = [sys.executable, "-P", "-m", "amqpscope", "pipeline", "sql", written]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    late = "SELECT if(range < 40000, 1, error('too far')) AS n FROM range(50000)"
    twice = "SELECT a.range, b.range FROM range(9) a, range(9) b"
    for query, form, line in (
        (late, "text", "DuckDB SQL: Invalid Input Error: too far"),
        (late, "json", "DuckDB SQL: Invalid Input Error: too far"),
        (twice, "json", "two columns are called range: give them different names (AS)"),
    ):
        ran = subprocess.run(
            [*command, query, "--format", form], capture_output=True, text=True, check=False, env=environment
        )
        assert (ran.returncode, ran.stderr) == (2, f"amqpscope: {line}\n")
    for form, first in (("text", "n\n"), ("json", '{"n": 0}\n')):
        query = "SELECT a.range AS n FROM range(100000) a, range(100000) b"
        with subprocess.Popen(
            [*command, query, "--format", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline().strip() == first.strip()
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 0


def test_captures_in_a_store_that_refuses() -> None:
    denied = OSError("x: AWS Error ACCESS_DENIED during GetObject operation: No; Details: secret")
    words = "the object store refuses access: check the credentials, and what they allow"
    assert trouble_of(denied) == Trouble("forbidden", words)
    gone = OSError("google::cloud::Status(UNAVAILABLE: CURL error")
    assert trouble_of(gone) == Trouble("failed", "the object store does not answer")
