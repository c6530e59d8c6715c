"""Campaigns that are played by a script of chance decide what they decided when ``traces.json`` was recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import traces

RECORDED = json.loads(traces.FILE.read_text())
SLOW = ("index", "five priors", "crowd", "crowd with controls", "crowd with scores")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in traces.CASES]
)
def test_decisions_stay_as_they_are(name: str) -> None:
    assert json.loads(json.dumps(traces.play(name))) == RECORDED[name]


def test_every_recorded_campaign_is_played() -> None:
    assert RECORDED.keys() == traces.CASES.keys()
