"""The form for what workers see of a campaign: its fields as text, and the changes that they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.shown_columns import ALL, columns_of, is_shown


@dataclass(frozen=True, slots=True)
class PageForm:
    """The fields; ``names`` has what workers read for each label, empty for the label itself."""

    name: str
    question: str
    names: tuple[str, ...]
    instructions: str
    language: str
    shown: tuple[str, ...]

    @classmethod
    def of(cls, config: CampaignSettings, columns: Sequence[str]) -> PageForm:
        """The fields as they stand."""
        names = config.display_names or ("",) * config.answers
        shown = tuple(name for name in columns if is_shown(config.show, name))
        return cls(config.name, config.question, names, config.instructions, config.language or "", shown)

    @classmethod
    def read(cls, form: Mapping[str, str], shown: Sequence[str], answers: int) -> PageForm:
        """The fields as they were sent; browsers end lines with two characters."""
        text = {name: value.replace("\r\n", "\n").strip() for name, value in form.items()}
        names = tuple(text.get(f"label{number}", "") for number in range(answers))
        return cls(
            text.get("name", ""), text.get("question", ""), names, text.get("instructions", ""),
            text.get("language", ""), tuple(shown),
        )  # fmt: skip

    def changes(self, config: CampaignSettings, columns: Sequence[str]) -> dict[str, Any]:
        """The settings that the fields ask for, as far as they differ from those that are there."""
        before = PageForm.of(config, columns)
        new: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("name", "question", "instructions")
            if getattr(self, name) != getattr(before, name)
        }
        if self.names != before.names:
            given = [name or label for name, label in zip(self.names, config.labels, strict=True)]
            new["display_names"] = None if given == list(config.labels) else given
        if self.language != before.language:
            new["language"] = self.language or None
        if columns and self.shown != before.shown:
            new["show"] = list(self.shown)
        return new


def columns_to_show(config: CampaignSettings, payloads: Sequence[Any]) -> list[str]:
    """The columns that a requester may have shown: those of the first tasks, and those that are named already."""
    named = [name for name in config.show or () if name != ALL]
    return list(dict.fromkeys([*columns_of(payloads), *named]))
