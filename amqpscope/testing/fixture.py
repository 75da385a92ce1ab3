"""What the fixture `amqp_capture` gives to a test."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

import pytest

from amqpscope.errors import AmqpscopeError, CaptureError, NotPermitted, NotPossible
from amqpscope.finding import Finding
from amqpscope.policy.terms import Terms
from amqpscope.report.printable import printable
from amqpscope.rules.editions import FINAL
from amqpscope.rules.profiles import AUTO, weight
from amqpscope.testing.judgement import Judgement, judge
from amqpscope.testing.recording import PacketRecording

__all__ = ["AmqpCapture", "Recording"]

FailOn = Literal["error", "warning", "note", "never"]

_SEVERITIES: Final = ("error", "warning", "note")
_LONGEST_NAME: Final = 120

_HOW_TO_PERMIT: Final = (
    "it takes the capability cap_net_raw: run pytest as root in a container that has it, or through "
    '`sudo -E setpriv` as README, "In your tests", shows'
)


class AmqpCapture:
    """Records what a test says in AMQP, or takes a capture file, and fails the test for what breaks a rule.

    Both take the options of `amqpscope check` by their names. fail_on: from which severity on findings fail
    the test, `error`, `warning`, `note` or `never`. fail_on_possible: those that are not certain do, too.
    strict: as fail_on="warning" and fail_on_possible. allow: rules, * and ? standing for any characters, that
    may be broken. allow_empty: there may be no AMQP at all. profile, spec: as `--profile` and `--spec`.
    """

    def __init__(self, node: pytest.Item, how: str, folder: Path, kept: Path | None) -> None:
        self._node = node
        self._how = how
        self._folder = folder
        self._kept = kept
        self._recordings: list[Recording] = []

    def check(
        self,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        fail_on: FailOn = "error",
        fail_on_possible: bool = False,
        strict: bool = False,
        allow: str | Iterable[str] = (),
        allow_empty: bool = False,
        profile: str = AUTO,
        spec: str = FINAL,
    ) -> list[Finding]:
        """Fail the test if what a capture file holds breaks a rule. Gives all findings, also those allowed.

        A list of files is one capture, in the order of time. What cannot be read fails the test, too, and a
        capture without AMQP unless it may be empty.
        """
        __tracebackhide__ = True
        terms = _Terms(fail_on, fail_on_possible, strict, allow, allow_empty, profile, spec)
        source = fspath(path) if isinstance(path, str | PathLike) else [fspath(one) for one in path]
        told = terms.judge(source, "")
        if told.failed:
            pytest.fail(told.text, pytrace=False)
        return told.findings

    def record(
        self,
        port: int | Iterable[int] | None = 5672,
        *,
        interface: str = "lo",
        fail_on: FailOn = "error",
        fail_on_possible: bool = False,
        strict: bool = False,
        allow: str | Iterable[str] = (),
        allow_empty: bool = False,
        profile: str = AUTO,
        spec: str = FINAL,
    ) -> "Recording":
        """A context manager: what is said in its block is recorded and, at its end, judged.

        port: of the broker, or several; None for TCP of any port. interface: its name; loopback unless said
        otherwise, or `any`. Where recording is not permitted the test is skipped, or fails if it is required.
        """
        terms = _Terms(fail_on, fail_on_possible, strict, allow, allow_empty, profile, spec)
        ports = [] if port is None else [port] if isinstance(port, int) else list(port)
        for one in ports:
            if not 0 < one < 65536:
                raise ValueError(f"port {one}: must be from 1 to 65535")
        if port is not None and not ports:
            raise ValueError("no port to record; None is for any port")
        recording = Recording(
            self._node, self._how, self._path(len(self._recordings)), interface, ports, terms
        )
        self._recordings.append(recording)
        return recording

    def close(self) -> None:
        """End what is still being recorded, without a verdict."""
        for recording in self._recordings:
            recording.abandon()

    def _path(self, before: int) -> Path:
        """Where the next recording goes."""
        number = f"-{before + 1}" if before else ""
        if self._kept is None:
            return self._folder / f"recording{number}.pcapng"
        return self._kept / f"{_file_name(self._node.nodeid)}{number}.pcapng"


class Recording:
    """What is recorded in a block, and judged at its end.

    path: the file, pcapng, complete once the block has ended; there is none where recording is off. findings:
    all that was found, once it has; also what is allowed. errors: of them the errors that are certain.
    """

    def __init__(
        self, node: pytest.Item, how: str, path: Path, interface: str, ports: list[int], terms: "_Terms"
    ) -> None:
        self.path = path
        self.findings: list[Finding] = []
        self._node = node
        self._how = how
        self._interface = interface
        self._ports = ports
        self._terms = terms
        self._packets: PacketRecording | None = None

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.certain and weight(one) == "error"]

    def __enter__(self) -> "Recording":
        __tracebackhide__ = True
        if self._how == "off":
            return self
        packets = PacketRecording(self.path, self._interface, self._ports)
        unable = wrong = ""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            packets.start()
        except NotPermitted:
            unable = f"recording on {self._interface} is not permitted: {_HOW_TO_PERMIT}"
        except NotPossible as error:
            unable = str(error)
        except (CaptureError, OSError) as error:
            wrong = str(error)
        if unable and self._how != "required":
            pytest.skip(f"amqpscope: {unable}")
        if unable:
            wrong = f"{unable} (and `amqpscope_record` is `required`)"
        if wrong:
            pytest.fail(f"amqpscope: {printable(wrong)}", pytrace=False)
        self._packets = packets
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        packets = self._packets
        if packets is None:
            return
        packets.stop()
        self._packets = None
        failing = isinstance(error, Exception | pytest.fail.Exception)
        if error is not None and not failing:
            return  # it was interrupted, or skipped: there is no verdict on a test that did not run
        told = self._judge(packets)
        self.findings = told.findings
        if not told.failed:
            return
        if failing:
            self._node.add_report_section("call", "AMQP", told.text)
        else:
            pytest.fail(told.text, pytrace=False)

    def abandon(self) -> None:
        """End it, if it has not ended yet, without a verdict."""
        if self._packets is not None:
            self._packets.stop()
            self._packets = None

    def _judge(self, packets: PacketRecording) -> Judgement:
        ports = f"port {', '.join(map(str, self._ports))}" if self._ports else "any port"
        told = self._terms.judge(
            str(self.path),
            f" ({packets.packets} packets on {self._interface}, {ports}: is that where the test talks?)",
        )
        if packets.lost or packets.left:
            text = (
                f"{packets.lost + packets.left} packets are missing in {self.path}: this machine was too busy"
            )
            told.text += f"\n{text}"
            self._node.warn(pytest.PytestWarning(f"amqpscope: {text}"))
        if packets.failure:
            told.failed = True
            told.text = f"recording ended early: {printable(packets.failure)}\n{told.text}"
        return told


class _Terms:
    """To what a capture is held. See `AmqpCapture`."""

    def __init__(
        self,
        fail_on: str,
        fail_on_possible: bool,
        strict: bool,
        allow: str | Iterable[str],
        allow_empty: bool,
        profile: str,
        spec: str,
    ) -> None:
        if fail_on not in (*_SEVERITIES, "never"):
            raise ValueError(f"fail_on={fail_on!r}: must be error, warning, note or never")
        if strict and fail_on != "note":
            fail_on = "warning"
        counting = () if fail_on == "never" else _SEVERITIES[: _SEVERITIES.index(fail_on) + 1]
        self._terms = Terms(counting, fail_on_possible or strict, allow_empty)
        self._allowed = [allow] if isinstance(allow, str) else list(allow)
        self._profile = profile
        self._spec = spec

    def judge(self, source: str | list[str], hint: str) -> Judgement:
        """What becomes of a capture. hint: what to look after if there is no AMQP in it."""
        __tracebackhide__ = True
        terms = self._terms
        try:
            return judge(source, self._counts, terms.allow_empty, self._profile, self._spec, hint)
        except AmqpscopeError as error:
            raise ValueError(str(error)) from None

    def _counts(self, finding: Finding) -> bool:
        names = (finding.rule, finding.rule.partition("/")[2])
        allowed = any(fnmatchcase(name, one) for one in self._allowed for name in names)
        return self._terms.counts(finding) and not allowed


def _file_name(node: str) -> str:
    """A test's id as the name of a file: readable, and no other test's."""
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", node)
    return f"{plain[:_LONGEST_NAME]}-{hashlib.sha256(node.encode('utf-8', 'replace')).hexdigest()[:8]}"
