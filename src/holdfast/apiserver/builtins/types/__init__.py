"""The types of built-in kinds, in the notation that `notation` reads."""
