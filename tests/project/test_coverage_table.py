"""The table of coverage adds up the files of each package."""

from project.coverage_table import table


def file(statements: int, run: int, branches: int, taken: int) -> dict[str, dict[str, int]]:
    counts = {"num_statements": statements, "covered_lines": run}
    return {"summary": {**counts, "num_branches": branches, "covered_branches": taken}}


def test_files_of_a_package_are_added_up() -> None:
    files = {
        "/x/amqpscope/lib/amqpscope/rules/a.py": file(10, 10, 0, 0),
        "/x/amqpscope/lib/amqpscope/rules/b.py": file(20, 5, 10, 5),
        "dissectors/wire.py": file(4, 2, 0, 0),
    }
    assert [line.split() for line in table({"files": files})[1:]] == [
        ["amqpscope.rules", "30", "10", "50.0%"],
        ["dissectors", "4", "0", "50.0%"],
        ["total", "34", "10", "50.0%"],
    ]
