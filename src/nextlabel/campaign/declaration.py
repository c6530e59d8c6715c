"""A campaign's settings: each is one field of one model, with its default, its range, its help and where it is offered.

The API's request models, the flags of ``campaign create`` and ``campaign change``, the forms of the dashboard, the
log's sentences and the signature of ``Campaign.create`` are made from these fields. Nothing of NumPy is imported, so
that ``--help`` stays quick; ``campaign.settings`` adds the checks that need a policy or a prior.

>>> declared("strength").default, declared("strength").description
(4.0, "Number of labels that a task's score is worth.")
"""

from __future__ import annotations

import inspect
import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Required,
    Self,
    TypedDict,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from nextlabel.errors import InputError, ProblemError
from nextlabel.money import Price, currency_of
from nextlabel.wording import is_text, looks

if TYPE_CHECKING:
    from nextlabel.model.prior import Prior
    from nextlabel.model.rewards import Reward
    from nextlabel.policies.base import Policy
else:  # they import NumPy; ``CampaignSettings`` checks these fields
    Prior = Reward = Policy = Any

#: Answers, and characters of a label's name, of the campaign's name, of its question and of a worker's name.
MOST_ANSWERS, LONGEST_LABEL, LONGEST_NAME, LONGEST_QUESTION, LONGEST_WORKER = 26, 200, 200, 5_000, 200
#: Characters of the instructions: some pages, and little enough to be read with every command on the campaign.
LONGEST_INSTRUCTIONS = 20_000
#: Characters of a worker's comment on a task.
LONGEST_COMMENT = 1000
#: Labels per task and labels in flight per task that a policy's tables can plan for.
MOST_LABELS, MOST_IN_FLIGHT = 64, 24
#: A platform's code.
CODE = "^[A-Za-z0-9_-]*$"
#: The largest whole number.
LARGEST = 10**9

Language = Literal["en", "de", "fr", "es", "pt", "zh", "hi", "ar"]
#: Languages of the workers' page, by their codes, as they call themselves.
LANGUAGES: Final[dict[str, str]] = {
    "en": "English", "de": "Deutsch", "fr": "Français", "es": "Español", "pt": "Português", "zh": "中文",
    "hi": "हिन्दी", "ar": "العربية",
}  # fmt: skip

TIME_HINT = "Give e.g. 2026-07-01T12:00:00Z, a datetime with a time zone, or seconds since 1970."


F = TypeVar("F", bound=Callable[..., Any])
Name = Annotated[str, Field(max_length=LONGEST_LABEL)]


@dataclass(frozen=True, slots=True)
class Offer:
    """Where a setting is offered, beside Python and the API.

    ``flag`` is the value's name after the flag of ``campaign create`` (and of ``campaign change``, if the setting may
    change while a campaign runs), or empty for no flag. ``form`` is the part of the dashboard's forms that asks for it:
    ``workers`` (what workers see), ``terms`` (what the campaign keeps to) or nowhere. ``none`` is what a setting
    without a value means, ``json`` the type that the API takes where it is not the field's own.
    """

    flag: str = ""
    changeable: bool = False
    form: Literal["", "workers", "terms"] = ""
    label: str = ""
    note: str = ""
    hint: str = ""
    none: str = "none"
    json: Any = None


def setting(default: Any, help: str, flag: str = "", **given: Any) -> Any:
    """The declaration of a setting: its default, its help, where it is offered (``Offer``), and what it may be."""
    offered = {name: given.pop(name) for name in Offer.__slots__ if name in given}
    info = Field(default, description=help, **given)
    info.metadata.append(Offer(flag, **offered))
    return info


class DeclaredSettings(BaseModel):
    """The fields; ``CampaignSettings`` is what a campaign has."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    budget: int = setting(
        ..., "Number of labels that may be bought; or money such as '120 EUR', which buys as many as the pay per "
        "label and the platform's fee allow, with those of control questions.", "U", ge=1, le=LARGEST, examples=[1200],
        changeable=True, label="Budget", note="labels, or money such as 120 EUR",
        json=Annotated[int, Field(ge=1, le=LARGEST)]
        | Annotated[str, Field(max_length=40, pattern="[A-Za-z].*[0-9]|[0-9].*[A-Za-z]")],
    )  # fmt: skip
    name: str = setting(
        "", "What the campaign is called.", "TEXT", max_length=LONGEST_NAME, changeable=True, form="workers",
        label="Name of the campaign", none="its id",
    )  # fmt: skip
    question: str = setting(
        "", "What workers are asked.", "TEXT", max_length=LONGEST_QUESTION, examples=["Is this review positive?"],
        changeable=True, form="workers", label="Question", none="the usual one",
    )  # fmt: skip
    labels: tuple[Name, ...] = setting(
        ("0", "1"), "Names of the answers. With two of them, the second is the one that a model's score is about.",
        "A,B", min_length=2, max_length=MOST_ANSWERS, examples=[["no", "yes"]], form="workers", label="Labels",
        note="one per line, at least two",
    )  # fmt: skip
    answer: Literal["choice", "rating", "number", "multi", "pair"] = setting(
        "choice", "What an answer is: a choice of one label, a rating (a step of a scale), a number of a range, multi "
        "(any of the labels), or pair: which of two items is better.", "NAME", examples=["rating"], form="workers",
        label="Answers", none="a choice of labels",
    )  # fmt: skip
    scale: str = setting(
        "", "With ratings: the ends of the scale, 1..5 if left out.", "LOW..HIGH", max_length=20, examples=["1..5"],
        form="workers", label="Scale", note="of ratings; they have no other labels",
    )  # fmt: skip
    range: str = setting(
        "", "With numbers: the ends of their range.", "LOW..HIGH", max_length=40, examples=["0..100"], form="workers",
        label="Range", note="of numbers; they have no labels",
    )  # fmt: skip
    loss: Literal["squared", "absolute"] = setting(
        "squared", "With ratings: the error whose expectation the result minimises.", "NAME", examples=["absolute"],
    )  # fmt: skip
    top: int | None = setting(
        None, "With pairs: find out which items are the best so many, and not the order of all.", "N", ge=1, le=LARGEST,
        examples=[10], form="workers", label="Best items", note="of pairs: which are they? Empty for the order of all",
        none="the order of all",
    )  # fmt: skip
    questions: str = setting(
        "", "Several questions per item, as JSON: a list of tables with name, text, answer (choice, rating, multi, "
        "number), labels, scale or range, and only_if, the answer of another question after which it is asked.",
        "FILE.json",
        max_length=LONGEST_INSTRUCTIONS, examples=['[{"name": "tone", "labels": ["good", "bad"]}]'], form="workers",
        label="Form", note="JSON, to ask several things at once", json=str | list[dict[str, Any]],
    )  # fmt: skip
    display_names: tuple[Name, ...] | None = setting(
        None, "What workers read in place of the labels, one name for each, in their order. Files keep the labels.",
        "A,B", max_length=MOST_ANSWERS, examples=[["No", "Yes"]], changeable=True, label="What workers read",
        none="the labels themselves",
    )  # fmt: skip
    instructions: str = setting(
        "", "Instructions with examples, in Markdown: workers read them before their first task, and again with a key.",
        "FILE.md", max_length=LONGEST_INSTRUCTIONS,
        examples=["Say what each label means, and give an example of each."], changeable=True, form="workers",
        label="Instructions with examples", note="Markdown",
    )  # fmt: skip
    language: Language | None = setting(
        None,
        "Language of the workers' page: en, de, fr, es, pt, zh, hi or ar. Left out, it follows each worker's browser.",
        "CODE", examples=["de"], changeable=True, form="workers", label="Language of the workers’ page",
        none="that of each worker’s browser",
    )  # fmt: skip
    show: tuple[Name, ...] | None = setting(
        None, "Columns that workers are shown, or * for all. Left out: all but those whose names look personal or "
        "like a model's score. All columns are kept and come back with the results.", "A,B", min_length=1,
        max_length=500, examples=[["text", "city"]], changeable=True, label="Columns", none="the usual ones",
    )  # fmt: skip
    features: tuple[Name, ...] | None = setting(
        None, "Columns of the tasks that a learner may learn from (policy crowd only): numbers, lists of numbers or "
        "texts, or * for all. A label then says something about tasks like its own. A file with features of its own "
        "may be given as well or instead.", "A,B|FILE", max_length=500, examples=[["text", "vector"]], changeable=True,
        form="terms", label="Columns to learn from",
    )  # fmt: skip
    deadline: float | None = setting(
        None, "No task is handed out after this time, and no lease outlives it: ISO 8601 with a time zone, or seconds "
        "since 1970.", "TIME", examples=["2026-07-01T12:00:00Z"], changeable=True, form="terms", label="Deadline",
        note="UTC, empty for none", json=str | float | None,
    )  # fmt: skip
    lease_seconds: float | None = setting(
        None, "How long a worker may hold a task. Left out, it is learnt from completion times.", "S", ge=1,
        le=30 * 86_400, examples=[600], changeable=True, form="terms", label="Lease time",
        note="seconds, empty to learn it", none="the learnt one",
    )  # fmt: skip
    policy: str = setting(
        "crowd",
        "The policy that chooses the next task. The usual one learns from the labels how good every worker is.", "NAME",
    )  # fmt: skip
    prior: Prior | None = setting(
        None, "Prior of tasks that have none of their own: one weight for each label, or a table with a kind. Left "
        "out, every answer is equally likely.", "A,B", examples=[[1, 1]], json=list[float] | dict[str, Any] | None,
    )  # fmt: skip
    threshold: float = setting(
        0.5, "The truth of a task is answer 1 if the probability of that answer is above this.", "D", gt=0, lt=1,
    )  # fmt: skip
    reward: Reward = setting(
        "accuracy", "What a decision is worth: accuracy; a utility as rows of numbers, one row for each label and one "
        "number for each truth (1,-5;0,1); or a table with a kind.", "REWARD", validate_default=True,
        json=str | dict[str, Any],
    )  # fmt: skip
    strength: float = setting(4.0, "Number of labels that a task's score is worth.", "S", gt=0)
    accuracy: float | None = setting(
        None, "How often a label is right, as far as it is known: the first idea of the workers, which turns scores "
        "into one-coin priors.", "Q", gt=0.5, lt=1, examples=[0.8], label="How often is one person right?",
        note="0.7, 0.8 or 0.9, if you know it", none="not known",
    )  # fmt: skip
    label_cost: float = setting(
        0.0, "Cost of a label in the unit of the reward, such as 0.02 of a right item: not money. Workers get no task "
        "when no label is worth it.", "C", ge=0, examples=[0.02], form="terms", label="Least that a label must add",
        note="to the chance that its item is right", hint="No amount of money: 0.02 means that a label is bought only "
        "where it adds 2 points or more. The campaign ends when none does, and workers are taken to be alike: how "
        "good each is is not learnt. Leave it empty to spend the whole budget.",
    )  # fmt: skip
    most_labels: int = setting(MOST_LABELS, "Most labels that one task may get.", "N", ge=1, le=MOST_LABELS)
    most_in_flight: int = setting(
        MOST_IN_FLIGHT, "Most workers who may hold one task at once.", ge=1, le=MOST_IN_FLIGHT,
    )  # fmt: skip
    rho: float = setting(0.25, "Labels expected in flight at once, before the rates are learnt.", gt=0)
    seed: int = setting(0, "Seed of the random draws.", ge=0, le=LARGEST)
    gold_in_budget: bool = setting(
        False, "Whether labels of control questions are paid from the budget.", "--gold-in-budget",
    )  # fmt: skip
    qualification: int | None = setting(
        None, "Control questions that everybody answers before their first task. Who gives too few right answers is "
        "blocked until you restore them.", "N", ge=1, le=50, examples=[5], form="terms", label="Qualification",
        note="control questions to begin with, empty for none",
    )  # fmt: skip
    pass_mark: float = setting(
        0.8, "Share of right answers that the qualification asks for.", "P", gt=0, le=1, examples=[0.8], form="terms",
        label="Pass mark", note="share of them to answer right, e.g. 0.8",
    )  # fmt: skip
    attempts: int = setting(
        1, "Attempts at the qualification, each with other questions.", "N", ge=1, le=10, examples=[2], form="terms",
        label="Attempts", note="each with other questions, as long as there are any",
    )  # fmt: skip
    turn_away: bool = setting(
        True, "Whether workers whose answers are noise, or whose next label is worth less than its price, are told "
        "that there is nothing for them at present (policy crowd only): nobody before their first ten labels, and "
        "only noise before half of an equal share of the budget.", "--turn-away/--serve-all", changeable=True,
        form="terms", label="Give no more work to people whose answers are noise or whose label is not worth its price",
        hint="They are thanked and told that there is nothing for them at present, nobody before their first ten "
        "labels. Untick it for volunteers and colleagues, who should always get something.",
    )  # fmt: skip
    known_workers: bool = setting(
        False, "Whether the campaign begins with what ended campaigns of the same owner with the same labels taught "
        "about a worker (policy crowd, a choice of labels), as far as their labels here agree with it.",
        "--known-workers/--new-workers", form="terms",
        label="Begin with what your earlier campaigns with these labels taught about the workers",
    )  # fmt: skip
    pay_per_label: float = setting(
        0.0, "What a worker is paid for a label, in a currency of your choice: for payments and cost.", "P", ge=0,
        le=LARGEST, examples=[0.05], changeable=True, form="terms", label="Pay per label",
        note="for the list of payments",
    )  # fmt: skip
    platform_fee: float = setting(
        0.0, "What the platform takes on top of the pay, as a share of it: for the campaign's cost.", "F", ge=0, le=10,
        examples=[0.33], changeable=True, form="terms", label="Platform’s fee",
        note="share on top of the pay, e.g. 0.33",
    )  # fmt: skip
    currency: str = setting(
        "", "Currency of the pay: for the campaign's cost. A budget in money brings its own.", "CODE", max_length=8,
        pattern=CODE, examples=["EUR"], changeable=True, form="terms", label="Currency", note="of the pay, e.g. EUR",
    )  # fmt: skip
    most_labels_per_worker: int | None = setting(
        None, "Most labels that one worker may give. Left out, there is no limit.", "N", ge=1, le=LARGEST,
        examples=[200], changeable=True, form="terms", label="Most labels per worker", note="empty for no limit",
    )  # fmt: skip
    at_most_wrong: float | None = setting(
        None, "Largest share of wrong labels that an expert's answers are to guarantee.", "EPS", gt=0, lt=1,
        examples=[0.05], changeable=True, form="terms", label="Largest share of wrong labels",
        note="for a guarantee by an expert, empty for none",
    )  # fmt: skip
    sure: float = setting(
        0.95, "Chance that the guarantee holds.", "P", gt=0, lt=1, examples=[0.95], changeable=True, form="terms",
        label="How sure", note="chance that the guarantee holds",
    )  # fmt: skip
    expert_cost: float | None = setting(
        None,
        "Price of an expert's answer, in labels: the campaign says whether more labels or the expert is cheaper next.",
        "C", gt=0, le=LARGEST, examples=[10], changeable=True, form="terms", label="Price of an expert's answer",
        note="in labels, empty if unknown",
    )  # fmt: skip
    stop_at: float | None = setting(
        None, "Pause the campaign when the expected accuracy reaches this: the audited one where there is an audit, "
        "else the workers' agreement, which is usually too high. It guarantees nothing.", "P", gt=0, lt=1,
        examples=[0.95], changeable=True, form="terms", label="Stop at an expected accuracy",
        note="an estimate, empty for the whole budget",
    )  # fmt: skip
    completion_code: str = setting(
        "", "Code that workers get when they have finished, to show a platform such as Prolific that they have.",
        "CODE", max_length=64, pattern=CODE, examples=["C1A2B3C4"], changeable=True, form="terms",
        label="Completion code", note="of the platform, empty for none",
    )  # fmt: skip

    @field_validator("*", mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        """Take lists for tuples, whole floats for whole numbers, NumPy's numbers for Python's and trim texts."""
        name = str(info.field_name)
        if name == "questions" and isinstance(value, list | tuple):
            value = json.dumps(value, ensure_ascii=False)
        if name == "deadline":
            return _seconds(value)
        if kind(name) is str:
            return _text(name, value)
        if kind(name) is tuple and isinstance(value, list | tuple):
            return _names(name, value)
        if kind(name) in (int, float) and not isinstance(value, bool | str) and isinstance(value, Real):
            number = int(value) if isinstance(value, Integral) else float(value)
            return int(number) if kind(name) is int and isinstance(number, float) and number.is_integer() else number
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _refuse(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse in one sentence."""
        try:
            return handler({"gold_in_budget": True, **in_labels(values)} if _is_money(values) else values)
        except ValidationError as error:
            raise _refusal(error.errors(include_url=False)[0]) from None


class ChangeableOptions(TypedDict, total=False):
    """The settings that need not be given and may change while a campaign runs, as keyword arguments."""

    deadline: datetime | str | float | None
    lease_seconds: float | None
    pay_per_label: float
    platform_fee: float
    currency: str
    most_labels_per_worker: int | None
    at_most_wrong: float | None
    sure: float
    expert_cost: float | None
    stop_at: float | None
    completion_code: str
    name: str
    question: str
    display_names: Sequence[str] | None
    instructions: str
    language: str | None
    show: Sequence[str] | None
    features: Sequence[str] | None
    turn_away: bool


class ChangeOptions(ChangeableOptions, total=False):
    """All settings that may change while a campaign runs."""

    budget: int | str


class SettingOptions(ChangeableOptions, total=False):
    """A campaign's settings as keyword arguments: what ``Campaign.create`` and ``Client.create`` take."""

    budget: Required[int | str]
    labels: Sequence[str]
    answer: Literal["choice", "rating", "number", "multi", "pair"]
    questions: str | Sequence[Mapping[str, Any]]
    scale: str
    range: str
    loss: Literal["squared", "absolute"]
    top: int | None
    policy: str | Policy
    prior: Prior | tuple[float, ...] | list[float] | Mapping[str, Any] | None
    threshold: float
    reward: Reward | str | Mapping[str, Any]
    strength: float
    accuracy: float | None
    label_cost: float
    most_labels: int
    most_in_flight: int
    rho: float
    seed: int
    gold_in_budget: bool
    known_workers: bool
    qualification: int | None
    pass_mark: float
    attempts: int


def names() -> list[str]:
    """The settings, in their order."""
    return list(DeclaredSettings.model_fields)


def declared(name: str) -> FieldInfo:
    """The declaration of a setting."""
    return DeclaredSettings.model_fields[name]


def offer(name: str) -> Offer:
    """Where a setting is offered."""
    return next(one for one in declared(name).metadata if isinstance(one, Offer))


def bounds(name: str) -> dict[str, Any]:
    """The range of a setting: ge, gt, le, lt, min_length, max_length and pattern, as far as it has them."""
    limits = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
    return {key: getattr(one, key) for one in declared(name).metadata for key in limits if hasattr(one, key)}


@cache
def kind(name: str) -> type:
    """What a setting with a value is: int, float, str, bool, tuple, or object."""
    if literals(name):
        return str
    annotation: Any = declared(name).annotation
    given = next((one for one in get_args(annotation) if one is not NoneType), annotation)
    given = annotation if get_origin(annotation) is tuple else given
    kinds = (bool, int, float, str, tuple)
    return next((one for one in kinds if one in (given, get_origin(given))), object)


def literals(name: str) -> tuple[str, ...]:
    """The values that a setting may have where they are few and named."""
    annotation: Any = declared(name).annotation
    found = [one for one in (annotation, *get_args(annotation)) if get_origin(one) is Literal]
    return get_args(found[0]) if found else ()


def spells_settings(*, changing: bool = False) -> Callable[[F], F]:
    """Spell a function's ``**settings`` out in its signature, with their defaults; or those that may change."""

    def spell(function: F) -> F:
        signature, keyword = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        settings = []
        for name in names():
            default = inspect.Parameter.empty if declared(name).is_required() else declared(name).default
            if offer(name).changeable or not changing:
                settings.append(inspect.Parameter(name, keyword, default=... if changing else default))
        function.__signature__ = signature.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]
        return function

    return spell


def spoken(name: str) -> str:
    """A setting's name in a sentence."""
    return "lease time" if name == "lease_seconds" else name.replace("_", " ")


def checked(name: str, value: Any) -> Any:
    """The value of one setting as it is kept, or an InputError."""
    return getattr(DeclaredSettings(**{"budget": 1, name: value}), name)


def _is_money(values: Any) -> bool:
    return isinstance(values, Mapping) and currency_of(values.get("budget")) is not None


def in_labels(values: Mapping[str, Any], before: DeclaredSettings | None = None) -> dict[str, Any]:
    """Settings whose budget is labels and not money; the pay may be one from before."""
    if not _is_money(values):
        return dict(values)
    pay, fee, said = (
        checked(name, values.get(name, getattr(before, name, declared(name).default)))
        for name in ("pay_per_label", "platform_fee", "currency")
    )
    currency = currency_of(values["budget"]) or ""
    if said and said != currency:
        raise InputError(f"the budget is in {currency} and the pay in {said}.", "Give both in one currency.")
    labels = Price(pay, fee, currency).labels_for(values["budget"])
    return {**values, "budget": labels, "currency": currency}


def _seconds(deadline: Any) -> float | None:
    """Seconds since 1970, from such a number, a datetime or an ISO text with a time zone; or None."""
    if deadline is None:
        return None
    if isinstance(deadline, str):
        try:
            deadline = datetime.fromisoformat(deadline.strip())
        except ValueError:
            raise InputError(f"deadline {deadline[:40]!r} is not a time.", TIME_HINT) from None
    if isinstance(deadline, datetime):
        if deadline.tzinfo is None:
            raise InputError(f"deadline {deadline.isoformat()!r} has no time zone.", TIME_HINT)
        deadline = deadline.timestamp()
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not 0 < deadline < 1e11:
        raise InputError(f"deadline {deadline!r} is not a time.", TIME_HINT)
    return float(deadline)


def _text(name: str, value: Any) -> Any:
    """Lines end as Unix ends them, and a whole number is a text too."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        return None if value is None else object()
    if not is_text(text):
        raise InputError(f"{spoken(name)} has a null character or half a character.", "Leave it out.")
    return text.strip().replace("\r\n", "\n").replace("\r", "\n")


def _names(name: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Different names, none of them empty; a column that is named twice is shown once."""
    names = tuple(_text(name, one) for one in given)
    if name == "show":
        names = tuple(dict.fromkeys(names))
        if not names:
            raise InputError("no column is shown to workers.", _example(name))
    shown = names if name == "show" else tuple(looks(one) if isinstance(one, str) else one for one in names)
    if "" in shown or len(set(shown)) < len(shown):
        raise InputError(f"{spoken(name)}: a name is empty, or two of them read alike.", _example(name))
    return names


def _example(name: str) -> str:
    examples = declared(name).examples
    return f"Give e.g. {json.dumps(examples[0])}." if examples else ""


#: What pydantic says, in the words of somebody who gives settings.
_WORDS: Final = {
    "a valid boolean": "true or false",
    "a valid string": "a text", "a valid tuple": "a list of names", " after validation": "",
    f"match pattern {CODE!r}": "have no other characters than letters, digits, - and _",
}  # fmt: skip


def _refusal(error: Mapping[str, Any]) -> InputError:
    """What pydantic refused, in a sentence that says what is allowed."""
    name, what, message = str(error["loc"][0]), str(error["type"]), str(error["msg"])
    if what == "extra_forbidden":
        return InputError(f"unknown setting {name[:60]!r}.", f"Known settings: {', '.join(sorted(names()))}.")
    if what == "missing":
        help = str(declared(name).description)
        return InputError(f"the campaign has no {spoken(name)}.", f"Give the {help[:1].lower()}{help[1:]}")
    given, limits = "" if what == "string_type" else f" {reprlib.repr(error['input'])}", bounds(name)
    if kind(name) in (int, float):
        ends = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
        allowed = " and ".join(f"{words} {limits[end]:,}" for end, words in ends.items() if end in limits)
        whole = "whole number" if kind(name) is int else "number"
        return ProblemError(f"{spoken(name)}{given} is not a {whole} of {allowed}.", _example(name))
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return InputError(f"{spoken(name)}{given} {message.partition(' ')[2]}.", _example(name))
