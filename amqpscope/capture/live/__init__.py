"""Packets as they pass: from the kernel's ring, from scapy's sockets, or from a pipe.

`open_source` (in `opening`) gives a `LiveSource` (in `source`), which hands its packets to a `PacketDecoder`.
"""
