"""A part of a capture as a capture of its own."""
