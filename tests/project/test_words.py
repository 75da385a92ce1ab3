"""The list of words finds a banned word in prose and in names, and leaves others alone."""

import pytest
from project.words import words_in


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("It is told once.", "told"),
        ("self._told = 1", "told"),
        ("MAX_DEEDS", "DEEDS"),
        ("one is held\nagainst the other", "held\nagainst"),
        ("Portrayed", "Portrayed"),
    ],
)
def test_a_banned_word_is_found(text: str, word: str) -> None:
    assert [(line, found) for line, found, _ in words_in(f"\n{text}")] == [(2, word)]


@pytest.mark.parametrize("text", ["untolerated", "paint", "indeed", "shelled", '"all_told_apart"'])
def test_other_words_are_not(text: str) -> None:
    assert list(words_in(text)) == []
