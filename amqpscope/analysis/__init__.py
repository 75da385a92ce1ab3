"""The way of one segment: from the table of connections to frames, judged, in one place.

`table` finds the connection, `connection` knows the order of the layers, `direction` decodes what one end
sends, `detection` names the protocol, `provenance` keeps which packet carried each octet.
"""
