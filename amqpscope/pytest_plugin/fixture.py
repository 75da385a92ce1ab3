"""What the fixture `amqp_capture` gives to a test."""

import datetime
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, TypedDict, Unpack

import pytest

from amqpscope.errors import CaptureError, FilterError, NotPermitted, NotPossible
from amqpscope.input.jobs import jobs_of
from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.model.finding import Finding
from amqpscope.policy import Given, Policy
from amqpscope.policy.configuration import Configuration
from amqpscope.policy.selectors import selectors
from amqpscope.policy.terms import COUNTING
from amqpscope.protocols import known_dialect
from amqpscope.pytest_plugin.judgement import CaptureOfTest, Judgement, judge
from amqpscope.pytest_plugin.recording import PacketRecording
from amqpscope.report.printable import printable
from amqpscope.rules.profiles import weight
from dissectors.wording import count

__all__ = ["AmqpCapture", "Options", "Recording"]

_LONGEST_NAME: Final = 120

_HOW_TO_PERMIT: Final = (
    "it takes the capability cap_net_raw: run pytest as root in a container that has it, or through "
    "`sudo -E setpriv` as docs/guides/pytest.md shows"
)


class Options(TypedDict, total=False):
    """To what a capture is held, beside the configuration file, which they beat.

    fail_on: from which severity on findings fail the test, `error`, `warning`, `note` or `never`.
    fail_on_possible: those that are not certain do, too. strict: as fail_on="warning" and fail_on_possible.
    allow: rules, or patterns of them, or severities, for which it does not fail here. allow_empty: there may
    be no AMQP at all. select, ignore, profile, spec, dialect, tls_keylog, tls_key: as the options of
    `amqpscope check`. Without the last two, the file that the environment variable SSLKEYLOGFILE names.
    jobs: how many processes read a large capture, a number or `auto`.
    """

    fail_on: Literal["error", "warning", "note", "never"]
    fail_on_possible: bool
    strict: bool
    allow: str | Iterable[str]
    allow_empty: bool
    select: str | Iterable[str]
    ignore: str | Iterable[str]
    profile: str
    spec: str
    dialect: str
    tls_keylog: str | PathLike[str] | Iterable[str | PathLike[str]]
    tls_key: str | PathLike[str] | Iterable[str | PathLike[str]]
    jobs: int | Literal["auto"]


class AmqpCapture:
    """Records what a test says in AMQP, or takes a capture file; fails the test for what breaks a rule."""

    def __init__(
        self, node: pytest.Item, how: str, folder: Path, kept: Path | None, configuration: Configuration
    ) -> None:
        self._node = node
        self._how = how
        self._folder = folder
        self._kept = kept
        self._configuration = configuration
        self._recordings: list[Recording] = []
        # Capture files that were checked.
        self._checked = 0

    def check(
        self, path: str | PathLike[str] | Sequence[str | PathLike[str]], **options: Unpack[Options]
    ) -> list[Finding]:
        """Fail the test if what a capture file holds breaks a rule. Gives all findings, also those allowed.

        A list of files is one capture, in the order of time. What cannot be read fails the test, too, and a
        capture without AMQP unless it may be empty.
        """
        __tracebackhide__ = True
        terms = _Terms(self._configuration, options)
        source = fspath(path) if isinstance(path, str | PathLike) else [fspath(one) for one in path]
        reported = terms.judge(source, "", self._path(self._checked, "check").with_suffix(".html"))
        self._checked += 1
        _warn(self._node, reported.expired)
        if reported.failed:
            pytest.fail(reported.text, pytrace=False)
        return reported.findings

    def record(
        self,
        port: int | Iterable[int] | None = 5672,
        *,
        interface: str = "lo",
        **options: Unpack[Options],
    ) -> "Recording":
        """A context manager: what is said in its block is recorded and, at its end, judged.

        port: of the broker, or several; None for TCP of any port. interface: its name; loopback unless said
        otherwise, or `any`. Where recording is not permitted the test is skipped, or fails if it is required.
        """
        terms = _Terms(self._configuration, options, ("port", "interface"))
        ports = [] if port is None else [port] if isinstance(port, int) else list(port)
        for one in ports:
            if not 0 < one < 65536:
                raise ValueError(f"port {one}: must be from 1 to 65535")
        if port is not None and not ports:
            raise ValueError("no port is given; None records every port")
        recording = Recording(
            self._node, self._how, self._path(len(self._recordings), "recording"), interface, ports, terms
        )
        self._recordings.append(recording)
        return recording

    def close(self) -> None:
        """End what is still being recorded, without a verdict."""
        for recording in self._recordings:
            recording.abandon()

    def _path(self, before: int, what: str) -> Path:
        """Where the next recording or page goes."""
        number = f"-{before + 1}" if before else ""
        if self._kept is None:
            return self._folder / f"{what}{number}.pcapng"
        name = _file_name(self._node.nodeid)
        kind = "" if what == "recording" else f"-{what}"
        return self._kept / f"{name}{kind}{number}.pcapng"


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
        """Those of the findings that are certain errors."""
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
        reported = self._judge(packets)
        self.findings = reported.findings
        if not reported.failed:
            return
        if failing:
            self._node.add_report_section("call", "AMQP", reported.text)
        else:
            pytest.fail(reported.text, pytrace=False)

    def abandon(self) -> None:
        """End it, if it has not ended yet, without a verdict."""
        if self._packets is not None:
            self._packets.stop()
            self._packets = None

    def _judge(self, packets: PacketRecording) -> Judgement:
        ports = f"port {', '.join(map(str, self._ports))}" if self._ports else "any port"
        reported = self._terms.judge(
            str(self.path),
            f" ({count(packets.packets, 'packet')} on {self._interface}, {ports}: "
            "check that the test uses this interface and this port)",
            self.path.with_suffix(".html"),
        )
        if packets.lost or packets.left:
            missing = packets.lost + packets.left
            text = f"{count(missing, 'packet')} not captured in {self.path}: this machine was too busy"
            reported.text += f"\n{text}"
            _warn(self._node, [text])
        _warn(self._node, reported.expired)
        if packets.failure:
            reported.failed = True
            reported.text = f"recording ended early: {printable(packets.failure)}\n{reported.text}"
        return reported


class _Terms:
    """To what a capture is held: a configuration, and `Options` of a call. Raises ValueError, TypeError.

    others: what else the call takes.
    """

    def __init__(self, configuration: Configuration, options: Options, others: tuple[str, ...] = ()) -> None:
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            known = ", ".join((*others, *Options.__annotations__))
            raise TypeError(f"no such option: {', '.join(sorted(unknown))}; there are {known}")
        if options.get("fail_on", "never") not in COUNTING:
            raise ValueError(f"fail_on={options['fail_on']!r}: must be one of {', '.join(COUNTING)}")
        given = Given()
        given.fail_on = options.get("fail_on")
        given.fail_on_possible = options.get("fail_on_possible")
        given.strict = options.get("strict")
        given.allow_empty = options.get("allow_empty")
        given.spec = options.get("spec")
        given.profile = options.get("profile")
        if "select" in options:
            given.select = _words(options["select"])
        if "ignore" in options:
            given.ignore = _words(options["ignore"])
        try:
            self._key_logs = _paths(options.get("tls_keylog", ()))
            self._keys = _paths(options.get("tls_key", ()))
            self._dialect = known_dialect(options.get("dialect", ""))
            self._policy = Policy(configuration, given, datetime.datetime.now().astimezone().date())
            self._jobs = configuration.values.get("jobs", 1)
            if "jobs" in options:
                self._jobs = jobs_of(str(options["jobs"]), "--jobs")
            self._allowed = selectors("allow", _words(options.get("allow", ())))
        except FilterError as error:
            raise ValueError(str(error).removeprefix("--")) from None

    def judge(self, source: str | list[str], hint: str, page: Path) -> Judgement:
        """What becomes of a capture. hint: what to look after if there is no AMQP in it. page: the file into
        which a capture is drawn that fails the test.
        """
        try:
            secrets = self._secrets()
        except FilterError as error:
            raise ValueError(str(error).removeprefix("--")) from None
        capture = CaptureOfTest(source, self._dialect, secrets)
        return judge(capture, self._policy, self._allows, hint, page, self._jobs)

    def _secrets(self) -> Secrets | None:
        """Those of the key logs as they are now, and of private keys; without one, of the file that the
        process writes to.
        """
        if self._key_logs or self._keys:
            return tls_secrets(self._key_logs, self._keys)
        written = os.environ.get("SSLKEYLOGFILE", "")
        if not written or importlib.util.find_spec("cryptography") is None:
            return None
        return tls_secrets([written], growing=True)

    def _allows(self, finding: Finding) -> bool:
        return any(one.fits(finding.rule, weight(finding)) for one in self._allowed)


def _warn(node: pytest.Item, texts: list[str]) -> None:
    for text in texts:
        node.warn(pytest.PytestWarning(f"amqpscope: {text}"))


def _words(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _paths(given: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[str]:
    return [fspath(given)] if isinstance(given, str | PathLike) else [fspath(one) for one in given]


def _file_name(node: str) -> str:
    """A test's id as the name of a file: readable, and no other test's."""
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", node)
    return f"{plain[:_LONGEST_NAME]}-{hashlib.sha256(node.encode('utf-8', 'replace')).hexdigest()[:8]}"
