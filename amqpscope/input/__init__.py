"""Where segments come from: files (`capture`), interfaces (`live`), a capture read again (`replay`)."""
