"""Where segments come from: capture files (`capture`), interfaces (`live`), one capture read again (`replay`)."""
