"""A run of a command that watches live traffic: its options become a watch, an audience and a recording."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from amqpscope.capture.live.privileges import give_up
from amqpscope.capture.live.source import LiveSource
from amqpscope.cli import quantities
from amqpscope.cli.inputs import Dialect, secrets_of
from amqpscope.cli.judging import configuration_of, today
from amqpscope.cli.live_options import BEFORE, LiveFormat
from amqpscope.cli.live_session import LiveSession, Stop
from amqpscope.cli.live_view import LiveView
from amqpscope.cli.live_writers import LiveJson, LiveText
from amqpscope.cli.nonblocking_output import NonBlockingOutput
from amqpscope.cli.read import TimeFormat
from amqpscope.cli.recording import LiveRecording, rotation_of
from amqpscope.cli.selection import Selection, parse_names
from amqpscope.errors import FilterError
from amqpscope.input.capture import CaptureOptions
from amqpscope.input.live import LiveWatch
from amqpscope.policy.policy import Given, Policy
from amqpscope.rules.rule_names import rules_like

__all__ = ["LiveChoices", "watch_live"]


@dataclass(frozen=True, kw_only=True)
class LiveChoices:
    """The options of `amqpscope.cli.live_options` and of `judging`, as they were given."""

    top: bool
    only: list[str] | None
    address: str | None
    quiet: bool
    verbose: int
    time: TimeFormat
    form: LiveFormat
    path: str | None
    rotate: list[str] | None
    files: int | None
    embed_keys: bool
    until: list[str] | None
    before: str | None
    duration: str | None
    most: int | None
    given: Given
    config: str | None
    no_config: bool
    dialect: Dialect | None
    tls_keylog: list[str] | None
    tls_key: list[str] | None


def watch_live(choices: LiveChoices, open_source: Callable[[], LiveSource], packet_filter: str = "") -> int:
    """Watch what a source brings until the run ends; the exit status.

    open_source: called once all options are known to make sense; privileges are given up behind it.
    packet_filter: by which it captures, in libpcap's language. Raises AmqpscopeError.
    """
    configuration = configuration_of(choices.config, choices.no_config)
    policy = Policy(configuration, choices.given, today())
    only = parse_names(",".join(choices.only)) if choices.only else None
    selection = Selection(address=choices.address, only=only)
    path, quiet, form = choices.path, choices.quiet, choices.form
    for option, number in (("--files", choices.files), ("--count", choices.most)):
        if number is not None and number < 1:
            raise FilterError(f"{option} {number}: must be at least 1")
    limits = [quantities.rotation("--rotate", one) for one in choices.rotate or []]
    rotation = rotation_of(limits, choices.files or 0)
    if rotation is not None and path is None:
        raise FilterError("--rotate: needs -w, which names the file to rotate")
    until, before = choices.until, choices.before
    awaited: frozenset[str] = rules_like("--until", ",".join(until)) if until else frozenset()
    if before is not None and (not until or path is None or rotation is not None):
        raise FilterError("--before: needs --until and -w, and cannot be combined with --rotate")
    kept = quantities.duration("--before", before) if before is not None else BEFORE * 1_000_000_000
    if not until or rotation is not None:
        kept = 0
    limit = quantities.duration("--duration", choices.duration) if choices.duration is not None else 0
    stop = Stop(limit, choices.most or 0, awaited, policy.terms.possible)
    if choices.top and (quiet or form is not LiveFormat.text or path == "-"):
        raise FilterError("--top: cannot be combined with --quiet, --format or -w -")
    secrets = secrets_of(choices.tls_keylog, choices.tls_key, configuration, growing=True)
    if choices.embed_keys and (path is None or secrets is None):
        raise FilterError("--embed-keys: needs -w and --tls-keylog or --tls-key")
    with open_source() as source:
        give_up()
        recording = None
        if path is not None:
            embedded = secrets if choices.embed_keys else None
            recording = LiveRecording(path, source, packet_filter, rotation, kept, embedded)
        watch = LiveWatch(
            source,
            CaptureOptions(
                records=not quiet,
                profile=policy.profile,
                spec=policy.spec,
                dialect=choices.dialect or "",
                secrets=secrets,
            ),
            recorder=None if recording is None else recording.recorder,
            limits=policy.limits if policy.diagnosing(True) else None,
        )
        audience = _audience(choices, watch, selection)
        if recording is not None:
            recording.tell = audience.tell
        session = LiveSession(watch, audience, recording, stop, policy)
        session.run()
    return session.status()


def _audience(choices: LiveChoices, watch: LiveWatch, selection: Selection) -> LiveView:
    """Who is shown what the watch brings."""
    if choices.top:
        from amqpscope.cli.live_top import LiveTop  # termios, which not every system has

        return LiveTop(watch)
    # What is recorded to standard output has it for itself.
    outlet = NonBlockingOutput(2 if choices.path == "-" else 1, sys.stdout.encoding)
    name, quiet = watch.source.name, choices.quiet
    if choices.form is LiveFormat.ndjson:
        return LiveJson(name, selection, quiet, outlet, choices.verbose >= 2)
    return LiveText(name, selection, quiet, outlet, choices.time.value, choices.verbose)
