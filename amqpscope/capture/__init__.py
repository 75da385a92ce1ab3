"""From a capture file's octets to TCP segments: the layer below which nothing knows of packets."""
