"""Tokens without a tokenizer: how many a text has, and text for a number of them.

A token is a piece of a word of up to six letters or digits, or one mark of punctuation.  For English this is close to
what real tokenizers count; for other scripts it is not.  A chat has four more tokens for each message and three for
the beginning of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_PIECE: Final = re.compile(r"\w{1,6}|[^\w\s]")

MESSAGE_TOKENS: Final = 4
REPLY_TOKENS: Final = 3

_WORDS: Final = (
    "the", "sea", "was", "calm", "and", "a", "small", "boat", "left", "its", "port", "before", "dawn", "with", "two",
    "men", "on", "board", "who", "knew", "each", "rock", "of", "that", "coast", "by", "name", "so", "they", "spoke",
    "little", "but", "once", "in", "while", "one", "of", "them", "would", "look", "up", "at", "the", "stars", "as",
    "if", "to", "ask", "how", "far", "it", "still", "was", "when", "wind", "came", "from", "north", "then", "sail",
    "rose", "like", "white", "wing",
)  # fmt: skip
"""One token each."""


def count(text: str) -> int:
    """The tokens of a text."""
    return sum(1 for _ in _PIECE.finditer(text))


def count_chat(messages: Iterable[str]) -> int:
    """The tokens of a chat, given the text of its messages."""
    return sum(count(each) + MESSAGE_TOKENS for each in messages) + REPLY_TOKENS


def word(index: int) -> str:
    """The text of the token number `index` of an answer: a word, with the space before it."""
    return _WORDS[index % len(_WORDS)] if index == 0 else f" {_WORDS[index % len(_WORDS)]}"


def of_length(tokens: int, *, start: int = 0) -> str:
    """A text with so many tokens."""
    return " ".join(_WORDS[(start + index) % len(_WORDS)] for index in range(max(tokens, 0)))
