"""Two captures of one scenario against each other: what the peers do in one of them and not in the other.

    with ReplayableCapture("before.pcap") as one, ReplayableCapture("after.pcap") as other:
        comparison = compare(one, other)

`transcript` is what is kept of a connection: for each peer, session, link, channel and consumer what is said,
in a form without what differs from run to run. `transcript10` and `transcript091` write it, `pairing` says
what belongs to what, `alignment` where two of them part, `comparison` puts that together; `text` and
`json_form` show it.
"""
