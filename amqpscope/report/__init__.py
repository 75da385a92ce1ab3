"""How results are shown: text for people, JSON for programs. Knows how, never what or why."""
