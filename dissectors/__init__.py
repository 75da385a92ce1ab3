"""Sans-IO decoders: bytes in, typed frames and problems out. They know no packets, peers or time."""
