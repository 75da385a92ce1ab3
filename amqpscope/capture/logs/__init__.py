"""Logs of client libraries, read as if they were captures.

A library that is asked to trace its protocol prints each frame that it sends or receives. `LogReader` takes
the octets of such a log and gives TCP segments. `log_reader` finds the library by what its lines look like.
The `LineFormat` of the library makes an `Entry` of each frame, and a `Dialogue` makes the entries of one
connection into the two streams of that connection.

A log is the view of one endpoint. What this endpoint had received when it sent a frame is the order of the
lines, and is exact. What its peer had received is not in the log: at most all that the endpoint had sent
before. The acknowledgements of the segments say the same, and `SegmentSink.logged` names the endpoint.

Some libraries print the octets, and nothing more has to be known. Others print the fields of each frame:
`encoding` puts these into octets again. What such a log does not hold is encoded as `UNLOGGED`
(`amqpscope.capture.unlogged`), which the analysis takes for a value that nobody could read.
"""
