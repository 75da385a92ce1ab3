"""`amqpscope pipeline`: many captures into tables, on Spark. Spark is imported where it is needed.

The commands that read tables are in `lake`.
"""

import contextlib
import enum
import functools
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpscope.cli.help import HelpfulCommand
from amqpscope.cli.inputs import DecodingOptions
from amqpscope.cli.interruptible import cancel_spark, interruptible
from amqpscope.cli.judging import (
    STATUS_PANEL,
    DiagnosisStatusOptions,
    NewFindingOptions,
    RuleOptions,
    StatusOptions,
    given_of,
    today,
)
from amqpscope.cli.lake import FINE_OR_FAILURE, SQL_EPILOG, sql, summary, tables
from amqpscope.cli.lake_care import HISTORY_EPILOG, VACUUM_EPILOG, compact, history, vacuum
from amqpscope.cli.lake_report import REPORT_EPILOG, report
from amqpscope.cli.lake_watch import WATCH_EPILOG, left_out, watch
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import say
from amqpscope.cli.spark_options import (
    HOW_PANEL,
    Configuration,
    FreshState,
    Master,
    SetBy,
    Tag,
    Verbose,
    WantedTables,
    WithJson,
    chosen_tables,
    need_extra,
    need_spark,
    spark_session,
)
from amqpscope.cli.status import Status, worst
from amqpscope.errors import FilterError
from amqpscope.input.jobs import jobs_of
from amqpscope.model.note import INTERNAL
from amqpscope.policy.config_finding import ConfigFinding
from amqpscope.policy.policy import Policy, Rulings
from amqpscope.protocols import PROTOCOLS, any_decoded
from amqpscope.report.printable import printable
from amqpscope.report.protocol_names import protocol_name
from dissectors.wording import count

if TYPE_CHECKING:
    from amqpscope.pipeline.appending import Addition
    from amqpscope.pipeline.inputs import CaptureFile
    from amqpscope.pipeline.planner import Plan
    from amqpscope.pipeline.pool import Pool

__all__ = ["app"]

_RUN_EPILOG = """\b
SOURCE is a file, a directory with all its files and subdirectories, a pattern
in quotes or a URL (s3://, gs://, hdfs://, file://). Files that are compressed
with gzip or zstd are decompressed. The files of a capture set are read as one
capture: a connection may continue from one file to the next.

\b
Examples:
  amqpscope pipeline run recorded/ --out lake
  amqpscope pipeline run 'tap-*/*.pcap.gz' --set-by '(tap-[0-9]+)/' --out lake
  amqpscope pipeline run recorded/ --out lake --append --tag site=berlin
  amqpscope pipeline run friday/ --out lake --replace date=2026-01-30
  amqpscope pipeline run recorded/ --out lake --engine pool
  amqpscope pipeline run recorded/ --out lake --explain
  amqpscope pipeline run s3://bucket/captures --out s3://bucket/lake \\
      --master spark://master.example:7077

\b
Exit status: 0 fine, 1 findings that make the command fail, 2 a failure (an
input that cannot be read at all, no Java, unknown option), 3 no AMQP 1.0 or
0-9-1 in any capture, 130 interrupted. The exit status is the first of 2, 1, 3
and 0 that applies to any input. The tables have the rows of all inputs. Files
in a directory that are not captures are reported, and each of them has a row
in the table `files`. If a SOURCE contains no capture, the command fails with
exit status 2. If a SOURCE is missing, or no input can be read, the existing
tables stay unchanged.
"""

_TROUBLES_SHOWN = 20


app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Analyze many captures on Spark, and write tables. The findings are the same as those of `check`.",
    epilog="Use `amqpscope pipeline COMMAND --help` for one command.",
)


class PlanChoice(enum.StrEnum):
    """How a run is done."""

    auto = "auto"
    chain = "chain"
    flow = "flow"


class EngineChoice(enum.StrEnum):
    """What does the tasks of a run."""

    spark = "spark"
    pool = "pool"


_POOLS: "list[Pool]" = []
"""The pool of the run that is under way."""


@contextlib.contextmanager
def _pool() -> Iterator[Any]:
    """A pool for all processors that this process may use. While it is open, `_cancel` ends its run."""
    from amqpscope.pipeline.pool import Pool

    _POOLS.append(Pool(jobs_of("auto")))
    try:
        yield _POOLS[-1]
    finally:
        _POOLS.pop()


def _cancel() -> None:
    """End what a run waits for."""
    cancel_spark()
    for pool in _POOLS:
        pool.cancel()


class ShuffleChoice(enum.StrEnum):
    """What the flow plan shuffles."""

    auto = "auto"
    references = "references"
    payload = "payload"


@app.command(cls=HelpfulCommand, epilog=_RUN_EPILOG, short_help="Analyze captures and write tables.")
@functools.partial(interruptible, cancel=_cancel)
@with_options
def run(
    *,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="Analyze the captures in this file or directory, at this "
            "URL, or in files that match this pattern.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="LAKE",
            help="Write the tables to this directory or URL. Without --append, the tables of an earlier run "
            "are replaced.",
        ),
    ],
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add the captures to the existing tables. Captures that are already in the tables are "
            "skipped, even if the files have other names now. If a capture set has a new file, or a file "
            "has grown, the run reads only what is new. Where that is not possible, all files of the set "
            "are analyzed again.",
        ),
    ] = False,
    replace: Annotated[
        str | None,
        typer.Option(
            "--replace",
            metavar="date=YYYY-MM-DD",
            show_default=False,
            help="Remove the rows of all captures that begin on this day (UTC), whether or not the rows have "
            "a tag. Then analyze the captures in SOURCE, and add their rows to the tables. SOURCE must "
            "contain all captures with packets of this day. The rows of other days are kept.",
        ),
    ] = None,
    master: Master = None,
    set_by: SetBy = "directory",
    wanted: WantedTables = "",
    with_json: WithJson = False,
    tag: Tag = None,
    fresh_state: FreshState = False,
    engine: Annotated[
        EngineChoice,
        typer.Option(
            metavar="spark|pool",
            rich_help_panel=HOW_PANEL,
            help="Choose what reads the captures. The engine `pool` uses processes on this machine, "
            "without Spark and Java. This engine is faster for captures of up to some 100 MB, because "
            "Spark takes several seconds to start. The engine `spark` is the default, because only "
            "Spark divides a large capture set, runs on a cluster and repeats failed tasks. Both "
            "engines write the same rows.",
        ),
    ] = EngineChoice.spark,
    plan: Annotated[
        PlanChoice,
        typer.Option(
            metavar="auto|chain|flow",
            rich_help_panel=HOW_PANEL,
            help=(
                "Choose how Spark divides the work. With --plan chain, each task analyzes one capture set. "
                "With --plan flow, Spark first collects the packets of each connection, and each task then "
                "analyzes one connection. With --plan auto, amqpscope chooses `chain` or `flow`, depending "
                "on the captures."
            ),
        ),
    ] = PlanChoice.auto,
    shuffle: Annotated[
        ShuffleChoice,
        typer.Option(
            metavar="auto|references|payload",
            rich_help_panel=HOW_PANEL,
            help="With --plan flow, choose the data that Spark sends from one task to another. With "
            "--shuffle payload, these are the contents of the packets. With --shuffle references, "
            "these are only the positions of the packets in the files, and Spark reads parts of the "
            "files twice. With --shuffle auto, amqpscope chooses `references` for uncompressed local "
            "files, otherwise `payload`.",
        ),
    ] = ShuffleChoice.auto,
    split: Annotated[
        int,
        typer.Option(
            metavar="MIB",
            min=1,
            rich_help_panel=HOW_PANEL,
            help=(
                "Let several Spark tasks read one large capture file. Each task reads one section of the "
                "file. The option sets the size of these sections in MiB."
            ),
        ),
    ] = 128,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            rich_help_panel=HOW_PANEL,
            help=("Show how the run would divide the work (see --plan), and exit without an analysis."),
        ),
    ] = False,
    configuration: Configuration = None,
    findings: NewFindingOptions,
    rules: RuleOptions,
    decoding: DecodingOptions,
    status: StatusOptions,
    diagnoses: DiagnosisStatusOptions,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing",
            rich_help_panel=STATUS_PANEL,
            help=(
                "Continue if a SOURCE is missing. Without this option, a missing SOURCE ends the "
                "run, and the existing tables stay unchanged."
            ),
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", rich_help_panel=HOW_PANEL, help="Show no progress.")
    ] = False,
    verbose: Verbose = False,
) -> int:
    """Analyze captures and write tables of frames, findings, diagnoses and more."""
    pooled = engine is EngineChoice.pool
    if pooled:
        _refuse_with_pool(master, configuration, plan)
        need_extra("lake", "pyarrow", "deltalake", "librt")
    else:
        need_spark()
    from amqpscope.pipeline.lake import Lake

    if not explain:
        Lake(out).refuse()  # before all else is imported: whoever has to wait is to know it soon
    from amqpscope.cli.spark_progress import progress
    from amqpscope.pipeline import session
    from amqpscope.pipeline.appending import addition_to, day_of, shaping_options, tables_to_add
    from amqpscope.pipeline.capture_set import capture_sets, fit_to_replace
    from amqpscope.pipeline.failure import PipelineError
    from amqpscope.pipeline.following import AppendedSets
    from amqpscope.pipeline.inputs import escaped
    from amqpscope.pipeline.planner import make_plan, pool_plan
    from amqpscope.pipeline.rows import RowTerms
    from amqpscope.pipeline.series import missing_files
    from amqpscope.pipeline.tags import tags_of
    from amqpscope.protocols import known_dialect

    day = None if replace is None else day_of(replace)
    tags = tags_of(tag or [])
    settings = rules.configuration()
    policy = Policy(settings, given_of(findings, rules, status, diagnoses), today())
    octets = split * 1024 * 1024
    chosen = chosen_tables(wanted, policy)
    analysis = None
    added = None
    unreadable = False
    # Where nobody asks for Spark in particular, sets that are not large need none.
    usual = not (master or configuration) and plan is PlanChoice.auto and _local_cores(None) > 0
    followed = AppendedSets(set_by, append and not explain, pooled or usual)
    try:
        with progress(quiet or explain) as shown:
            secrets = decoding.secrets(settings)
            sets = capture_sets(sources, set_by)
            if not explain:
                fit_to_replace(sets, allow_missing)
            if append or day is not None:
                shaping = shaping_options(set_by, with_json, decoding.dialect or "", policy)
                if day is None and secrets is None:
                    terms = RowTerms(policy, known_dialect(decoding.dialect or ""), with_json=with_json)
                    sets = followed.go_on(sets, Lake(out), chosen, terms, tags, fresh_state, say)
                rest = sets
                added = addition_to(Lake(out), sets, shaping, day=day)
                chosen = tables_to_add(added, chosen, bool(wanted))
                unreadable = _report_addition(added)
                sets = followed.begin(added, rest)
                if not sets and day is not None:
                    raise PipelineError(f"{Lake(out).name}: nothing is replaced: no capture can be added")
                if not sets and not followed.batch.sets:
                    print(printable(f"{Lake(out).name}: nothing is new"))
                    return Status.FAILURE if unreadable else Status.FINE
                pooled = pooled or not (sets or explain)  # nothing is left for Spark
            if explain and not pooled and _local_cores(master):
                _print_plan(make_plan(sets, _local_cores(master), plan, octets, shuffle))
                return Status.FINE
            if shown is not None and not pooled:
                shown.starts()
            with _pool() if pooled else spark_session(master, verbose, configuration) as runner:
                from amqpscope.pipeline.analysis import Analysis

                if pooled:
                    planned = pool_plan(sets, runner.processes)
                else:
                    planned = make_plan(sets, session.cores(runner), plan, octets, shuffle)
                analysis = Analysis(runner, planned, secrets, sources, set_by)
                if explain:
                    _print_plan(analysis.plan)
                    return Status.FINE
                files = sum(len(one.files) for one in sets)
                files += sum(one.files for one in followed.batch.sets)
                tally = None
                if shown is not None:
                    if pooled:
                        shown.reads(files, planned.cores)
                    else:
                        tally = shown.runs(runner, files)
                outcome = analysis.write(
                    *(
                        out,
                        chosen,
                        tally,
                        policy,
                        allow_missing,
                        decoding.dialect or "",
                        with_json,
                        added,
                        tags,
                        followed.batch,
                    )
                )
                followed.settle()
        troubles = Lake(out).troubles()
    except BaseException:
        if analysis is not None:
            analysis.clean_up()
        raise
    finally:
        followed.close()
    sets = [*sets, *(of.one for of in followed.batch.sets)]
    inputs = [file for one in sets for file in one.files]
    names = {file: escaped(file.capture) for file in inputs}
    skipped = {name for file, name in names.items() if file.skipped}
    troubles = [trouble for trouble in troubles if trouble[0] in set(names.values()) - skipped]
    for capture, reason, detail in troubles[:_TROUBLES_SHOWN]:
        say(f"{capture}: {reason}: {detail}")
    if len(troubles) > _TROUBLES_SHOWN:
        say(f"{len(troubles) - _TROUBLES_SHOWN} more inputs were not read completely (see the table files)")
    for key in outcome.counts:
        if key[0] == "mishap":
            say(f"{key[1]}: {INTERNAL}: {key[2]}".removeprefix(": "))
    if skipped:
        say(f"{count(len(skipped), 'file')} in directories {'is' if len(skipped) == 1 else 'are'} no capture")
    _report_missing([escaped(file.capture) for one in sets for file in missing_files(one.files, one.ordered)])
    remarks = _remarks(policy, inputs, outcome.counts, {trouble[0] for trouble in troubles})
    for remark in remarks:
        say(f"{remark.severity} {remark.rule} in {remark.place}: {remark.message}")
    outcome.counts["file", "skipped"] = len(skipped)
    outcome.counts["file", "unreadable"] -= len(skipped)
    _print_counts(out, outcome.counts)
    statuses = _statuses(outcome.counts, policy)
    if unreadable:
        statuses.append(Status.FAILURE)
    return worst([*statuses, Status.FINDINGS] if any(remark.counts for remark in remarks) else statuses)


def _refuse_with_pool(master: str | None, configuration: list[str] | None, plan: PlanChoice) -> None:
    """Raise FilterError for what only Spark has."""
    given = "--master" if master is not None else "--conf" if configuration else ""
    if not given and plan is PlanChoice.flow:
        given = "--plan flow"
    if given:
        raise FilterError(f"{given}: cannot be combined with --engine pool, which runs without Spark")


def _report_addition(added: "Addition") -> bool:
    """Say what is not read, and why. Gives whether an input cannot be read and has no row in the tables."""
    if added.known:
        say(f"{count(len(added.known), 'file')} in the lake already")
    for line in left_out(added):
        say(line)
    if added.cut:
        names = ", ".join(added.cut[:_TROUBLES_SHOWN])
        more = len(added.cut) - _TROUBLES_SHOWN
        say(
            f"the lake loses rows of {added.day} that other captures had: {names}"
            f"{f' and {more} more' if more > 0 else ''}; repeat the run and give these captures, too"
        )
    skipped = sum(file.skipped for file in added.unreadable)
    if skipped:
        say(f"{count(skipped, 'file')} in directories {'is' if skipped == 1 else 'are'} no capture")
    unreadable = [file for file in added.unreadable if not file.skipped]
    for file in unreadable[:_TROUBLES_SHOWN]:
        assert file.trouble is not None
        say(f"{file.capture}: {file.trouble.reason}: {file.trouble.detail}: not added")
    if len(unreadable) > _TROUBLES_SHOWN:
        say(f"{len(unreadable) - _TROUBLES_SHOWN} more inputs cannot be read and are not added")
    return bool(unreadable)


def _report_missing(names: list[str]) -> None:
    """Say which files are missing in series (`series.missing_files`), if any. That is no failure."""
    if names:
        shown = ", ".join(names[:_TROUBLES_SHOWN])
        more = len(names) - _TROUBLES_SHOWN
        are, their = ("is", "its") if len(names) == 1 else ("are", "their")
        say(
            f"{count(len(names), 'file')} {are} missing between others of {their} series: {shown}"
            f"{f' and {more} more (see the table files)' if more > 0 else ''}"
        )


def _print_plan(plan: "Plan") -> None:
    for line in plan.explain():
        print(printable(line))


app.command(cls=HelpfulCommand, epilog=WATCH_EPILOG, short_help="Add captures while they are written.")(watch)
app.command(cls=HelpfulCommand, epilog=FINE_OR_FAILURE, short_help="Summarize the tables that `run` wrote.")(
    summary
)
app.command(cls=HelpfulCommand, epilog=REPORT_EPILOG, short_help="Report on the tables that `run` wrote.")(
    report
)
app.command(
    cls=HelpfulCommand, epilog=SQL_EPILOG, short_help="Run an SQL query on the tables that `run` wrote."
)(sql)
app.command(cls=HelpfulCommand, epilog=FINE_OR_FAILURE, short_help="Show the columns of the tables.")(tables)
app.command(
    cls=HelpfulCommand, epilog=HISTORY_EPILOG, short_help="List the runs that have written to the tables."
)(history)
app.command(
    cls=HelpfulCommand,
    epilog=FINE_OR_FAILURE,
    short_help="Merge small files of the tables into larger files.",
)(compact)
app.command(
    cls=HelpfulCommand, epilog=VACUUM_EPILOG, short_help="Delete files that the tables no longer need."
)(vacuum)


def _local_cores(master: str | None) -> int:
    """How many cores a master on this machine is, 0 if it is another."""
    if master is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        return 0
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master or "local[*]")
    if match is None:
        return 0
    if match.group(1) == "*":
        return os.cpu_count() or 1
    return max(int(match.group(1) or 1), 1)


def _statuses(counts: Counter[tuple[str, ...]], policy: Policy) -> list[Status]:
    terms = policy.terms
    statuses = [Status.FINE]
    if counts["file", "unreadable"] or any(key[0] == "mishap" for key in counts):
        statuses.append(Status.FAILURE)
    for key, number in counts.items():
        certain = key[-1] == "certain" or terms.possible
        if key[0] == "finding" and number and key[1] in terms.severities and certain:
            statuses.append(Status.FINDINGS)
        if key[0] == "diagnosis" and policy.fails_for(key[1]):
            statuses.append(Status.FINDINGS)
    if not _anything(counts) and not terms.allow_empty:
        say("no AMQP 1.0 or 0-9-1 in any of the captures")
        statuses.append(Status.NO_AMQP)
    return statuses


def _remarks(
    policy: Policy, inputs: "list[CaptureFile]", counts: Counter[tuple[str, ...]], troubles: set[str]
) -> list[ConfigFinding]:
    """What is to be said of the configuration. troubles: captures that were not read to their ends."""
    rulings = Rulings(policy)
    rulings.used.update(int(key[1]) for key in counts if key[0] == "allowed")
    for file in inputs:
        if not file.skipped:
            rulings.begin(file.capture)
            if file.capture not in troubles:
                rulings.ended(file.capture)
    return rulings.close(not any(key[0] == "mishap" for key in counts)).remarks


def _anything(counts: Counter[tuple[str, ...]]) -> bool:
    """Whether there was something to check: both peers of a connection spoke AMQP, or something was found."""
    connections = {key[1]: number for key, number in counts.items() if key[0] == "connection"}
    return any_decoded(connections) or any(key[0] == "finding" for key in counts)


def _print_counts(out: str, counts: Counter[tuple[str, ...]]) -> None:
    from amqpscope.pipeline.inputs import shown

    def total(kind: str) -> int:
        return sum(number for key, number in counts.items() if key[0] == kind)

    read = counts["file", "ok"]
    partial = counts["file", "partial"]
    unreadable = counts["file", "unreadable"]
    files = f"{count(total('file'), 'file')}: {read} read, {partial} in part, {unreadable} unreadable"
    if counts["file", "skipped"]:
        files += f", {counts['file', 'skipped']} no capture"
    print(printable(f"{shown(out)}: {files}"))
    spoken = [
        f"{counts['connection', name]} of them {protocol_name(name)}"
        for place, name in enumerate(PROTOCOLS)
        if counts["connection", name] or place == 0
    ]
    connections = count(total("connection"), "connection")
    print(f"  {connections}, {', '.join(spoken)}; {count(counts['frame',], 'frame')}")
    found = []
    for certainty in ("certain", "possible"):
        for severity in ("error", "warning", "note"):
            number = counts["finding", severity, certainty]
            if number:
                found.append(count(number, f"{'' if certainty == 'certain' else 'possible '}{severity}"))
    if counts["suppressed",]:
        found.append(f"{counts['suppressed',]} suppressed")
    nothing = "nothing wrong found" if _anything(counts) else "nothing to check"
    print(f"  {', '.join(found) or nothing}")
