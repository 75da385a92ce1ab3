"""TLS 1.0 to 1.3 (RFC 2246, 4346, 5246, 8446) as a layer: records in, the octets that they carry out.

`suites` names the cipher suites, `schedule` derives keys, `ciphers` opens records, `handshake` reads messages
in the clear, `session` is what both directions share, `stream` reads the records of one direction, `layer` is
the layer of a connection. The primitives are those of the package `cryptography`, imported when a record is
to be opened.
"""
