"""The engine's page tells every reason, and its example runs."""

from __future__ import annotations

import re

from tests.places import ROOT

from holdfast.kernel.reasons import Code

PAGE = (ROOT / "docs" / "engine.md").read_text()


def test_every_reason_is_documented_with_its_own_meaning() -> None:
    documented = dict(re.findall(r"^\| `([A-Z]\w+)` \| (.+) \|$", PAGE, re.MULTILINE))
    assert documented == {code.value: code.meaning for code in Code}


def test_the_examples_run() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert examples
    for example in examples:
        exec(example, {})
