"""Packets kept as they were captured, in pcapng files that say what was found in them."""
