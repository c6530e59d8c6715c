"""The page of all settings says what the model of settings says."""

from __future__ import annotations

import json
from typing import Any

from pydantic.fields import FieldInfo

from documents import ROOT
from nextlabel.campaign.declaration import DeclaredSettings, offer

PAGE = ROOT / "docs" / "settings.md"
SIGNS = {"ge": "from {}", "gt": "above {}", "le": "to {}", "lt": "below {}"}


def shown(default: Any) -> str:
    if default is None or default == "":
        return "none"
    return f"`{json.dumps(default)}`"


def limits(field: FieldInfo) -> str:
    found = [
        text.format(f"{getattr(one, sign):,}")
        for one in field.metadata
        for sign, text in SIGNS.items()
        if hasattr(one, sign)
    ]
    longest = [one.max_length for one in field.metadata if getattr(one, "max_length", None)]
    unit = "characters" if field.annotation is str else "names"
    return " ".join([*found, *(f"at most {most:,} {unit}" for most in longest)])


def table() -> str:
    rows = ["| setting | default | range | may change | meaning |", "|---|---|---|---|---|"]
    for name, field in DeclaredSettings.model_fields.items():
        default = "required" if field.is_required() else shown(field.default)
        changes = "yes" if offer(name).changeable else ""
        rows.append(f"| `{name}` | {default} | {limits(field)} | {changes} | {field.description} |")
    return "\n".join(rows)


def test_the_page_has_every_setting() -> None:
    page = PAGE.read_text(encoding="utf-8")
    between = page.partition("<!-- settings:start -->\n")[2].partition("\n<!-- settings:end -->")[0]
    assert between == table(), f"put this between the comments of docs/settings.md:\n{table()}"
