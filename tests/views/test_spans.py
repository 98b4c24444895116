"""Images of a rollout in the columns that a line has for them."""

from __future__ import annotations

import pytest

from holdfast.views.spans import fitting_images

IMAGES = ("registry.example.com/shop:1", "registry.example.com/shop:2")


@pytest.mark.parametrize(
    ("width", "room", "shown"),
    [
        (120, 70, "  registry.example.com/shop:1 → registry.example.com/shop:2"),
        (120, 50, "  …/shop:1 → :2"),
        (80, 70, "  …/shop:1 → :2"),
        (80, 10, "  …/shop:…"),
        (80, 0, ""),
    ],
)
def test_images_are_shortened_before_they_are_cut(width: int, room: int, shown: str) -> None:
    assert fitting_images(IMAGES, width, room) == shown
