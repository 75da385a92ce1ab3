"""Views: names for a part of the rows of a table. A query can use them like tables; they have no files.

`engines` and `lake.table` make them of the declarations here, for DuckDB and Spark alike. `--as-of` and
`--tag` hold for a view as for its table. A lake without the table is without the view.
"""

from typing import Final, NamedTuple

__all__ = ["NOT_ENDED", "NOT_SETTLED", "VIEWS", "View"]


class View(NamedTuple):
    """The rows of a table that meet a condition, in SQL that DuckDB and Spark understand alike.

    meaning: of its rows, in a sentence as that of a table.
    """

    name: str
    table: str
    condition: str
    meaning: str

    @property
    def sql(self) -> str:
        """The query that the name stands for."""
        return f"SELECT * FROM {self.table} WHERE {self.condition}"

    def describe(self) -> list[str]:
        """The view as lines of text."""
        return [f"{self.name}: {self.meaning}", f"  the rows of {self.table} WHERE {self.condition}"]


NOT_ENDED: Final = "client_tcp_ended IS NULL AND server_tcp_ended IS NULL"
"""Of connections. A reset is the end of both directions, and the row has it for the peer that sent it."""

NOT_SETTLED: Final = "settled_by IS NULL AND aborted IS NOT TRUE"
"""Of deliveries. A delivery that is sent settled, or that nobody has to settle in 0-9-1, has its sender in
`settled_by` once it is there to its end. An aborted one is settled by that (AMQP 1.0, 2.7.5), also where no
frame says so and it has no `settled_by`.
"""

VIEWS: Final[dict[str, View]] = {
    view.name: view
    for view in (
        View(
            "open_connections",
            "connections",
            NOT_ENDED,
            "every TCP connection that neither peer has ended at the end of the capture",
        ),
        View(
            "open_deliveries",
            "deliveries",
            NOT_SETTLED,
            "every delivery that no peer has settled while it was followed, and that the sender has not "
            "aborted; also those of sessions, channels and connections that have ended",
        ),
    )
}
"""All views, by name."""
