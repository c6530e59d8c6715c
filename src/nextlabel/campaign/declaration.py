"""The one declaration of a campaign's settings: default, range and help text of each.

``CampaignSettings`` takes its defaults and checks from here, the API's request model, the command line's options and
the dashboard's form their defaults, ranges and help. Nothing is imported, so that ``--help`` stays quick::

    declared("strength").default, declared("strength").help, declared("strength").bounds   # {"gt": 0}
    Field(declared("strength").default, description=declared("strength").help, **declared("strength").bounds)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

#: Answers, and characters of a label's name, of the campaign's name, of its question and of a worker's name.
MOST_ANSWERS, LONGEST_LABEL, LONGEST_NAME, LONGEST_QUESTION, LONGEST_WORKER = 26, 200, 200, 5_000, 200
#: Characters of the instructions: some pages, and little enough to be read with every command on the campaign.
LONGEST_INSTRUCTIONS = 20_000
#: Characters of a worker's comment on a task.
LONGEST_COMMENT = 1000
#: Characters of a completion code.
LONGEST_CODE = 64
#: A lease lasts at least a second and at most thirty days.
LEASE_RANGE = (1.0, 30 * 86_400.0)
#: Labels per task and labels in flight per task that a policy's tables can plan for.
MOST_LABELS, MOST_IN_FLIGHT = 64, 24
#: Languages of the workers' page, by their codes, as they call themselves.
LANGUAGES: Final[dict[str, str]] = {
    "en": "English", "de": "Deutsch", "fr": "Français", "es": "Español", "pt": "Português", "zh": "中文",
    "hi": "हिन्दी", "ar": "العربية",
}  # fmt: skip
#: The largest whole number.
LARGEST = 10**9


class _Required:
    """Stands where a setting has no default."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; ``bounds`` has ge, gt, le, lt, min_length or max_length, as Pydantic spells them."""

    help: str
    default: Any = REQUIRED
    bounds: dict[str, Any] = field(default_factory=dict)
    #: What the form and the command line show as an example.
    example: str = ""


SETTINGS: Final[dict[str, Setting]] = {
    "budget": Setting(
        "Number of labels that may be bought.", bounds={"ge": 1, "le": LARGEST}, example="1200"
    ),
    "labels": Setting(
        "Names of the answers. With two of them, the second is the one that a model's score is about.",
        ("0", "1"), {"min_length": 2, "max_length": MOST_ANSWERS}, "no,yes",
    ),
    "name": Setting("What the campaign is called.", "", {"max_length": LONGEST_NAME}),
    "question": Setting("What workers are asked.", "", {"max_length": LONGEST_QUESTION}),
    "display_names": Setting(
        "What workers read in place of the labels, one name for each, in their order. Files keep the labels.",
        None, {"max_length": MOST_ANSWERS}, "No,Yes",
    ),
    "instructions": Setting(
        "Instructions with examples, in Markdown: workers read them before their first task, and again with a key.",
        "", {"max_length": LONGEST_INSTRUCTIONS},
    ),
    "language": Setting(
        "Language of the workers' page: en, de, fr, es, pt, zh, hi or ar. Left out, it follows each worker's browser.",
        None, example="de",
    ),
    "show": Setting(
        "Columns that workers are shown, or * for all. Left out: all but those whose names look personal or like a "
        "model's score. All columns are kept and come back with the results.",
        None, {"max_length": 500}, "text,city",
    ),
    "deadline": Setting(
        "No task is handed out after this time, and no lease outlives it: ISO 8601 with a time zone, or seconds since "
        "1970.", None, example="2026-07-01T12:00:00Z",
    ),
    "lease_seconds": Setting(
        "How long a worker may hold a task. Left out, it is learnt from completion times.",
        None, {"ge": LEASE_RANGE[0], "le": LEASE_RANGE[1]}, "600",
    ),
    "policy": Setting(
        "The policy that chooses the next task. The usual one learns from the labels how good every worker is.", "crowd"
    ),
    "prior": Setting(
        "Prior of tasks that have none of their own: one weight for each label, or a table with a kind. Left out, "
        "every answer is equally likely.", None, example="1,1",
    ),
    "threshold": Setting(
        "The truth of a task is answer 1 if the probability of that answer is above this.", 0.5, {"gt": 0, "lt": 1}
    ),
    "reward": Setting("What a decision is worth: accuracy, or a table with a kind.", "accuracy"),
    "strength": Setting("Number of labels that a task's score is worth.", 4.0, {"gt": 0}),
    "accuracy": Setting(
        "Accuracy of the workers, which turns scores into one-coin priors.", None, {"gt": 0.5, "lt": 1}
    ),
    "label_cost": Setting(
        "Cost of a label in the unit of the reward. Workers get no task when no label is worth it.",
        0.0, {"ge": 0}, "0.02",
    ),
    "most_labels": Setting("Most labels that one task may get.", MOST_LABELS, {"ge": 1, "le": MOST_LABELS}),
    "most_in_flight": Setting(
        "Most workers who may hold one task at once.", MOST_IN_FLIGHT, {"ge": 1, "le": MOST_IN_FLIGHT}
    ),
    "rho": Setting("Labels expected in flight at once, before the rates are learnt.", 0.25, {"gt": 0}),
    "seed": Setting("Seed of the random draws.", 0, {"ge": 0, "le": LARGEST}),
    "gold_in_budget": Setting("Whether labels of control questions are paid from the budget.", False),
    "turn_away": Setting(
        "Whether workers whose next label is worth less than its price are told that there is nothing for them (policy "
        "crowd only, and nobody before their first ten labels).", False,
    ),
    "pay_per_label": Setting(
        "What a worker is paid for a label, in a currency of your choice: for the list of payments.", 0.0, {"ge": 0},
        "0.05",
    ),
    "most_labels_per_worker": Setting(
        "Most labels that one worker may give. Left out, there is no limit.", None, {"ge": 1, "le": LARGEST}, "200"
    ),
    "completion_code": Setting(
        "Code that workers get when they have finished, to show a platform such as Prolific that they have.",
        "", {"max_length": LONGEST_CODE}, "C1A2B3C4",
    ),
}  # fmt: skip


def declared(name: str) -> Setting:
    """The declaration of a setting."""
    return SETTINGS[name]
