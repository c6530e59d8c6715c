"""A problem from flags and a problem file, and the problem in plain words.

A flag is declared once: its help, how its text is read, and the entry of a problem file that it takes the place of.
They arrive as text and are checked on the way to a Problem, so that a refusal says what was given and what is allowed.
Flags win over the file, one that describes tasks in every [[tasks]] table; those that contradict each other are not
allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nextlabel.cli.options import Flag, parse_number, parse_prior, parse_rate, parse_whole
from nextlabel.cli.output import report_reading, say
from nextlabel.errors import ProblemError
from nextlabel.files.tables import TableSummary
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.model.problem import Problem, WorkerType
    from nextlabel.model.tasks import TaskClass
    from nextlabel.simulation.answers import Drawn
    from nextlabel.solve.numbers import NumberProblem

PANEL = "The problem"
Table = dict[str, Any]
Places = Callable[[Table, "Given"], list[Table]]

#: Pairs of flags that cannot both be given, and why.
CONTRADICTIONS = (
    ("prior", "scores", "the scores are the priors"),
    ("prior", "accuracy", "workers of known accuracy leave no other prior than --truth"),
    ("prior", "truth", "--truth goes with --accuracy"),
    ("prior", "strength", "--strength goes with --scores"),
    ("tasks", "scores", "the file of scores has one row per task"),
    ("truth", "scores", "each score is that task's probability of truth 1"),
    ("accuracy", "strength", "a score is either the prior of the truth or worth a number of labels"),
    ("accuracy", "threshold", "with workers of known accuracy the truth has no threshold"),
    ("utility", "value", "the value of a correct task is in the matrix"),
    ("utility", "reward", "a utility matrix is a reward of its own"),
)


class Given(NamedTuple):
    """A flag as it was typed, what it says, and the file that it wins over."""

    typed: str
    value: Any
    file: str | None

    @property
    def flag(self) -> str:
        """Its name."""
        return self.typed.split()[0]


def _classes(table: Table, given: Given) -> list[Table]:
    return list(table["tasks"])


def _in_pieces(table: Table, given: Given) -> list[Table]:
    if not isinstance(table.get("arrival_rate"), list):
        raise ProblemError(f"{given.typed} needs an arrival rate in pieces.", "Add e.g. --arrival-rate 0:2,16:0.2.")
    return [table]


def _one_class(table: Table, given: Given) -> list[Table]:
    entries: list[Table] = table["tasks"]
    if len(entries) > 1:
        raise ProblemError(
            f"{given.typed} does not say which of {len(entries)} classes in {given.file} is meant.",
            f"Leave {given.flag} out and edit the file.",
        )
    if not entries:
        entries.append({})
    return entries


def _unscored(entries: list[Table], given: Given, which: str) -> list[Table]:
    if any("scores" in entry for entry in entries):
        what = f"{given.typed} does not go with the scores in {given.file}, which {which}."
        raise ProblemError(what, f"Leave {given.flag} out.")
    return entries


def _with_prior(table: Table, given: Given) -> list[Table]:
    """A threshold of the file is dropped where it has no meaning."""
    from nextlabel.model.tables import prior_from

    entries = _unscored(table["tasks"], given, "are the priors")
    for entry in entries if not prior_from(given.value).thresholded else []:
        entry.pop("threshold", None)
    return entries


def _new_scores(table: Table, given: Given) -> list[Table]:
    (entry,) = _one_class(table, given)
    for key in ("count", "prior"):
        entry.pop(key, None)
    return [_scores_of(entry)]


def _scores_of(entry: Table) -> Table:
    scores = entry.setdefault("scores", {})
    if not isinstance(scores, dict):
        raise ProblemError("scores have no file.", 'Write e.g. scores = {file = "items.csv", strength = 4}.')
    return scores


def _known_accuracy(table: Table, given: Given) -> list[Table]:
    """Scores, or priors of workers of known accuracy, under which the truth has no threshold."""
    found = []
    for entry in table["tasks"]:
        entry.pop("threshold", None)
        if "scores" not in entry:
            entry["prior"] = dict(_kind(entry, "prior", "one-coin") or {"kind": "one-coin", "probability": 0.5})
        found.append(_scores_of(entry) if "scores" in entry else entry["prior"])
    return found


def _kind(entry: Table, key: str, kind: str) -> Table | None:
    """The prior or the reward of an entry, if it is of that kind."""
    found = entry.get(key)
    return found if isinstance(found, dict) and found.get("kind") == kind else None


def _each(find: Callable[[Table], Table | None], lacks: str, hint: str) -> Places:
    """What is found in the classes, where there is something."""

    def places(table: Table, given: Given) -> list[Table]:
        found = [one for entry in table["tasks"] if (one := find(entry)) is not None]
        if not found:
            raise ProblemError(f"{given.typed} {lacks}.", hint)
        return found

    return places


_scores = _each(lambda entry: _scores_of(entry) if "scores" in entry else None, "needs scores", "Add --scores FILE.")
_coins = _each(
    lambda entry: _kind(entry, "prior", "one-coin"), "is for workers of known accuracy", "Add e.g. --accuracy 0.8."
)


def _utility(text: str) -> dict[str, Any]:
    from nextlabel.model.tables import parse_matrix

    return {"kind": "utility", "matrix": parse_matrix(text)}


_utilities = _each(
    lambda entry: _kind(entry, "reward", "utility"),
    "is for a utility matrix",
    'Add --utility; "1,0;0,1" is 1 for a right decision and 0 for a wrong one.',
)


class Entry(Flag):
    """A flag that takes the place of ``key`` in some tables of a problem file, and of what it ``drops`` there.

    It says a number unless ``parse`` reads it; ``hint`` says what to give.
    """

    def __init__(
        self, metavar: str | None, help: str, hint: str = "", places: Places | None = None, *, key: str = "",
        parse: Callable[[str], Any] | None = None, drops: str = "", said: str = "", kind: str = "number",
    ) -> None:  # fmt: skip
        super().__init__(metavar, help, rich_help_panel=PANEL)
        self.key, self.places, self.drops = key, places, drops
        self.parse = parse or (
            lambda text: parse_number(said or self.flag.strip("-").replace("-", " "), text, hint, kind)
        )


def _correct(text: str) -> Table:
    return {"kind": "accuracy", "value": parse_number("value", text, "Give what a correct task is worth, e.g. 10.")}


#: The flags by name; they take effect in this order.
ENTRIES = {
    "tasks": Entry("K", "Number of tasks.", "Give at least one task, e.g. --tasks 100.",
                   lambda table, given: _unscored(_one_class(table, given), given, "have one row per task"),
                   key="count", said="number of tasks", kind="whole number"),
    "budget": Entry("U", "Number of labels to buy.", "Give the number of labels to buy, e.g. --budget 1200.",
                    kind="whole number"),
    "scores": Entry("FILE", "A CSV file with a model's score for each task.", "", _new_scores, key="file", parse=str),
    "score_column": Entry("NAME", "With --scores: the column with them. Default: probability.", "", _scores,
                          key="column", parse=str),
    "strength": Entry("S", "With --scores: how many labels a score is worth.",
                      "Give e.g. --strength 4: worth four labels.", _scores, drops="accuracy"),
    "prior": Entry("A,B", "Beta prior of a task, or one Dirichlet weight per answer. Default: 1,1.", "", _with_prior,
                   parse=parse_prior),
    "threshold": Entry("D", "The truth of a task is 1 if its theta is above D. Default: 0.5.",
                       "Give a number between 0 and 1, e.g. 0.5.", _classes),
    "accuracy": Entry("Q", "Instead of a prior: workers are right with probability Q.",
                      "Give the chance that one answer is right, e.g. --accuracy 0.8.", _known_accuracy,
                      drops="strength"),
    "truth": Entry("P", "With --accuracy: probability that the truth is 1. Default: 0.5.",
                   "Give P(truth is 1), e.g. --truth 0.5.", _coins, key="probability"),
    "reward": Entry(None, "What a finished task is worth. Default: accuracy.", "", _classes,
                    parse=lambda kind: {"kind": kind}),
    "value": Entry("V", "What a task that comes out right is worth. Default: 1.", "", _classes, key="reward",
                   parse=_correct),
    "utility": Entry("MATRIX", 'Value of each decision (row) for each truth: "1,-5;0,1".', "", _classes, key="reward",
                     parse=_utility),
    "abstain": Entry("V", "With --utility: the value of not deciding.",
                     "Give the value of not deciding, e.g. --abstain 0.3.", _utilities),
    "label_cost": Entry("C", "What one label costs, in the unit of the value. Default: 0.",
                        "Give what one label costs, in the unit of the value, e.g. --label-cost 0.02."),
    "arrival_rate": Entry("R", "Workers per unit of time, or start:rate,start:rate. Default: 0.1.", parse=parse_rate,
                          drops="arrival_period"),
    "arrival_period": Entry("P", "With start:rate pieces: the time after which they repeat.",
                            "Give the time after which the rates start again, e.g. --arrival-period 24.", _in_pieces),
    "completion_rate": Entry("MU", "A label takes a time of 1/MU on average. Default: 0.4.",
                             "Give labels per worker and unit of time, e.g. --completion-rate 0.4."),
    "horizon": Entry("T", "The campaign ends after a time of T, and labels not in by then are lost. Default: inf.",
                     "Give a time above 0, or inf to wait for every label."),
    "problem": Entry("FILE", "Read the problem from a TOML file; flags win over it."),
}  # fmt: skip
_KINDS: Any = {"reward": Literal["accuracy", "squared-error"] | None}
_Flags = make_dataclass(
    "_Flags",
    [
        (name, _KINDS.get(name, str | None), field(default=None, metadata={"flag": one}))
        for name, one in ENTRIES.items()
    ],
)


class ProblemFlags(_Flags):  # type: ignore[misc, valid-type]
    """What the user typed about the problem; None where nothing was typed."""

    def _read(self) -> Table:
        """The problem's file, empty without one."""
        from nextlabel.model.tables import read_problem_table

        return {} if self.problem is None else read_problem_table(self.problem)

    @property
    def question(self) -> Table:
        """What the problem's file asks for."""
        found: Table = self._read().get("question", {})
        return found

    def _table(self, kind: str) -> Table | None:
        """The file's table if it asks for that; only the budget has a flag then."""
        from nextlabel.model.tables import asked

        table = self._read()
        if asked(table) != kind:
            return None
        typed = [one.flag for name, one in ENTRIES.items() if name not in ("problem", "budget") and getattr(self, name)]
        if typed:
            raise ProblemError(f"{typed[0]} has no meaning for {kind}s.", "Describe items and workers in the file.")
        if self.budget is not None:
            table["budget"] = parse_whole("--budget", self.budget, 0, "Give a number of labels.")
        return table

    def read_numbers(self) -> NumberProblem | None:
        """The problem if its file asks for numbers."""
        from nextlabel.solve.numbers import NumberProblem

        table = self._table("number")
        return None if table is None else NumberProblem.from_table(table)

    def read_drawn(self) -> Drawn | None:
        """Pairs or several labels to simulate, if the file asks for them."""
        from nextlabel.simulation.answers import Drawn

        table, question = self._table("pair"), self.question
        if table is not None:
            return Drawn.pairs(table)
        return Drawn.labels(self.read(), question.get("labels")) if question.get("answer") == "multi" else None

    def read_all(self) -> tuple[Problem, list[dict[str, Any]]]:
        """The checked Problem, by file and flags together, and reports on files of scores for ``--json``."""
        from nextlabel.model.tables import problem_from_table

        table = self._read()
        refuse_contradictions(self)
        table.setdefault("tasks", [])
        for name, entry in ENTRIES.items():
            text = None if name == "problem" else getattr(self, name)
            if text is not None:
                given = Given(f"{entry.flag} {text}", entry.parse(text), self.problem)
                for place in [table] if entry.places is None else entry.places(table, given):
                    place.pop(entry.drops, None)
                    place[entry.key or name] = dict(given.value) if isinstance(given.value, dict) else given.value
        reports: list[TableSummary] = []
        problem = problem_from_table(table, say, reports)
        return problem, report_reading(*reports)

    def read(self) -> Problem:
        """The checked Problem."""
        return self.read_all()[0]


def refuse_contradictions(flags: ProblemFlags) -> None:
    """Refuse two flags that cannot both hold."""
    for one, other, why in CONTRADICTIONS:
        if getattr(flags, one) is not None and getattr(flags, other) is not None:
            raise ProblemError(f"--{one} and --{other} contradict each other: {why}.", "Leave one of them out.")
    if flags.value is not None and flags.reward == "squared-error":
        raise ProblemError(
            "--value and --reward squared-error contradict each other: no task is correct or wrong.",
            "Leave one of them out.",
        )


def describe(problem: Problem, pending: str = "wait") -> str:
    """The problem in one line; ``pending`` says what becomes of labels in flight at the last arrival."""
    from nextlabel.model.tasks import different_rewards

    rewards = list(dict.fromkeys(reward.describe() for reward in different_rewards(problem.classes)))
    parts = [_prior(problem.classes[0]) if len(problem.classes) == 1 else f"{len(problem.classes):,} classes"]
    if len(problem.classes) > 1 and problem.answers > 2:
        parts.append(f"{problem.answers} answers")
    if not problem.is_accuracy:
        parts.append(rewards[0] if len(rewards) == 1 else f"{len(rewards)} rewards")
    cost = f" at {problem.label_cost:g} each" if problem.label_cost > 0 else ""
    rate, end = problem.arrival_rate, "labels in flight at the last arrival dropped"
    if problem.workers:
        where = f"{counted(len(problem.workers), 'type')} of workers"
    else:
        end = f"horizon {problem.horizon:g}" if problem.finite else "every label awaited" if pending == "wait" else end
        arrivals = f"arrival rate {rate:g}" if isinstance(rate, float) else rate.describe()
        where = f"{arrivals}, completion rate {problem.completion_rate:g}, {end}"
    labels = f"{counted(problem.budget, 'label')}{cost}"
    return f"{counted(problem.tasks, 'task')} ({', '.join(parts)}), {labels}, {where}"


def _prior(one: TaskClass) -> str:
    if one.prior.kind in ("one-coin", "fact"):
        return one.prior.describe()
    threshold = f", threshold {one.threshold:g}" if one.prior.thresholded else ""
    return f"prior {one.prior.describe()}{threshold}"


def problem_fields(problem: Problem) -> dict[str, Any]:
    """What was solved, for JSON; a horizon of null waits for every label, a period of null never repeats."""
    from nextlabel.model.tables import reward_table, worker_table
    from nextlabel.model.tasks import different_rewards, patterns

    rate = problem.arrival_rate
    pieces, period = (rate, None) if isinstance(rate, float) else (rate.pieces, rate.period)
    return {
        "tasks": problem.tasks,
        "classes": len(problem.classes),
        "answers": problem.answers,
        "priors": sorted({c.prior.kind for c in patterns(problem.classes)}),
        "rewards": [reward_table(reward) for reward in different_rewards(problem.classes)],
        "budget": problem.budget,
        "label_cost": problem.label_cost,
        "arrival_rate": pieces,
        "arrival_period": period,
        "completion_rate": problem.completion_rate,
        "horizon": problem.horizon,
        **({"workers": [worker_table(worker) for worker in problem.workers]} if problem.workers else {}),
    }


def counts_tasks(problem: Problem) -> bool:
    """Whether the value is the expected number of tasks that come out right."""
    return not _costs(problem) and problem.is_accuracy


def net(problem: Problem) -> str:
    """The addition to a sentence about a value if labels cost something."""
    return ", net of what its labels cost" if _costs(problem) else ""


def worker_text(worker: WorkerType) -> str:
    """A type of workers in a few words: how they answer, how many labels they give."""
    from nextlabel.model.tables import answers_text

    answers = answers_text(worker)
    if worker.supply is not None:
        return f"{answers}, {counted(worker.supply, 'label')}"
    return answers if worker.arrival_rate is None else f"{answers}, arrival rate {worker.arrival_rate:g}"


def _costs(problem: Problem) -> bool:
    """Whether labels cost something."""
    return problem.label_cost > 0 or any(worker.cost > 0 for worker in problem.workers)
