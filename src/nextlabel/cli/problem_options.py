"""A problem from flags and a problem file: the flags, how they overlay the file, and the problem in plain words.

They arrive as text and are checked on the way to a Problem, so that a refusal says what was given and what is allowed.

Problem flags merged into the table of a problem file: flags win, and flags that contradict each other are refused.

A flag that describes tasks changes every [[tasks]] table. ``--scores`` replaces count and prior.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from nextlabel.cli.options import parse_matrix, parse_number, parse_prior, parse_rate, parse_whole, text
from nextlabel.cli.output import say, say_read
from nextlabel.errors import ProblemError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.files.tables import TableSummary
    from nextlabel.problem.problem import Problem, WorkerType
    from nextlabel.problem.tasks import TaskClass
    from nextlabel.simulation.answers import Drawn
    from nextlabel.solve.numbers import NumberProblem

PANEL = "The problem"
Table = dict[str, Any]

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


def _flag(name: str, metavar: str | None, help: str) -> Any:
    return text(name, metavar, help, rich_help_panel=PANEL)


@dataclass(frozen=True, slots=True)
class ProblemFlags:
    """What the user typed about the problem; None where nothing was typed."""

    tasks: Annotated[str | None, _flag("--tasks", "K", "Number of tasks.")] = None
    budget: Annotated[str | None, _flag("--budget", "U", "Number of labels to buy.")] = None
    prior: Annotated[
        str | None, _flag("--prior", "A,B", "Beta prior of a task, or one Dirichlet weight per answer. Default: 1,1.")
    ] = None
    threshold: Annotated[
        str | None, _flag("--threshold", "D", "The truth of a task is 1 if its theta is above D. Default: 0.5.")
    ] = None
    accuracy: Annotated[
        str | None, _flag("--accuracy", "Q", "Instead of a prior: workers are right with probability Q.")
    ] = None
    truth: Annotated[
        str | None, _flag("--truth", "P", "With --accuracy: probability that the truth is 1. Default: 0.5.")
    ] = None
    scores: Annotated[str | None, _flag("--scores", "FILE", "A CSV file with a model's score for each task.")] = None
    score_column: Annotated[
        str | None, _flag("--score-column", "NAME", "With --scores: the column with them. Default: probability.")
    ] = None
    strength: Annotated[str | None, _flag("--strength", "S", "With --scores: how many labels a score is worth.")] = None
    value: Annotated[str | None, _flag("--value", "V", "What a task that comes out right is worth. Default: 1.")] = None
    utility: Annotated[
        str | None, _flag("--utility", "MATRIX", 'Value of each decision (row) for each truth: "1,-5;0,1".')
    ] = None
    abstain: Annotated[str | None, _flag("--abstain", "V", "With --utility: the value of not deciding.")] = None
    reward: Annotated[
        Literal["accuracy", "squared-error"] | None,
        _flag("--reward", None, "What a finished task is worth. Default: accuracy."),
    ] = None
    label_cost: Annotated[
        str | None, _flag("--label-cost", "C", "What one label costs, in the unit of the value. Default: 0.")
    ] = None
    arrival_rate: Annotated[
        str | None, _flag("--arrival-rate", "R", "Workers per unit of time, or start:rate,start:rate. Default: 0.1.")
    ] = None
    arrival_period: Annotated[
        str | None, _flag("--arrival-period", "P", "With start:rate pieces: the time after which they repeat.")
    ] = None
    completion_rate: Annotated[
        str | None, _flag("--completion-rate", "MU", "A label takes a time of 1/MU on average. Default: 0.4.")
    ] = None
    horizon: Annotated[
        str | None,
        _flag(
            "--horizon", "T", "The campaign ends after a time of T, and labels not in by then are lost. Default: inf."
        ),
    ] = None
    problem: Annotated[
        str | None, _flag("--problem", "FILE", "Read the problem from a TOML file; flags win over it.")
    ] = None

    @property
    def question(self) -> dict[str, Any]:
        """What the problem's file asks for."""
        from nextlabel.problem.tables import read_problem_table

        found: dict[str, Any] = {} if self.problem is None else read_problem_table(self.problem).get("question", {})
        return found

    def _table(self, kind: str) -> dict[str, Any] | None:
        """The file's table if it asks for that; only the budget has a flag then."""
        from nextlabel.problem.tables import asked, read_problem_table

        table = {} if self.problem is None else read_problem_table(self.problem)
        if asked(table) != kind:
            return None
        typed = [one.name for one in fields(self) if one.name not in ("problem", "budget") and getattr(self, one.name)]
        if typed:
            flag = typed[0].replace("_", "-")
            raise ProblemError(f"--{flag} has no meaning for {kind}s.", "Describe items and workers in the file.")
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

        table = self._table("pair")
        if table is not None:
            return Drawn.pairs(table)
        return (
            Drawn.labels(self.read(), self.question.get("labels")) if self.question.get("answer") == "multi" else None
        )

    def read(self, read: list[dict[str, Any]] | None = None) -> Problem:
        """The checked Problem; reports on files of scores are appended to ``read``, for ``--json``."""
        from nextlabel.problem.tables import problem_from_table, read_problem_table

        table = {} if self.problem is None else read_problem_table(self.problem)
        merge_flags(table, self)
        reports: list[TableSummary] = []
        problem = problem_from_table(table, say, reports)
        found = say_read(*reports)
        if read is not None:
            read += found
        return problem


def takes_problem(function: Callable[..., None]) -> Callable[..., None]:
    """Replace the first parameter of a command, a ProblemFlags, by one option for each of its fields."""
    names = [field.name for field in fields(ProblemFlags)]
    hints = get_type_hints(ProblemFlags, include_extras=True)
    own_hints = get_type_hints(function, include_extras=True)
    own = [p.replace(annotation=own_hints[p.name]) for p in list(inspect.signature(function).parameters.values())[1:]]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name]) for name in names
    ]

    @wraps(function)
    def command(**arguments: Any) -> None:
        flags = ProblemFlags(**{name: arguments.pop(name) for name in names})
        function(flags, **arguments)

    parameters = [*shared, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own)]
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    del command.__wrapped__
    return command


def merge_flags(table: Table, flags: ProblemFlags) -> None:
    """Change ``table``, read from a file or empty, into what the file and the flags say together."""
    refuse_contradictions(flags)
    _set_campaign(table, flags)
    entries: list[Table] = table.setdefault("tasks", [])
    _set_tasks(entries, flags)
    _set_scores(entries, flags)
    _set_priors(entries, flags)
    _set_rewards(entries, flags)


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


def _set_campaign(table: Table, flags: ProblemFlags) -> None:
    """Budget, rates, horizon and label cost."""
    if flags.budget is not None:
        hint = "Give the number of labels to buy, e.g. --budget 1200."
        table["budget"] = parse_number("budget", flags.budget, hint, "whole number")
    for key, hint in (
        ("completion_rate", "Give labels per worker and unit of time, e.g. --completion-rate 0.4."),
        ("horizon", "Give a time above 0, or inf to wait for every label."),
        ("label_cost", "Give what one label costs, in the unit of the value, e.g. --label-cost 0.02."),
    ):
        text = getattr(flags, key)
        if text is not None:
            table[key] = parse_number(key.replace("_", " "), text, hint)
    if flags.arrival_rate is not None:
        table["arrival_rate"] = parse_rate(flags.arrival_rate)
        table.pop("arrival_period", None)  # it belonged to the file's rate
    if flags.arrival_period is not None:
        hint = "Give the time after which the rates start again, e.g. --arrival-period 24."
        if not isinstance(table.get("arrival_rate"), list):
            raise ProblemError(
                f"--arrival-period {flags.arrival_period} needs an arrival rate in pieces.",
                "Add e.g. --arrival-rate 0:2,16:0.2.",
            )
        table["arrival_period"] = parse_number("arrival period", flags.arrival_period, hint)


def _set_tasks(entries: list[Table], flags: ProblemFlags) -> None:
    if flags.tasks is None:
        return
    _only_one(entries, f"--tasks {flags.tasks}", flags)
    hint = "Give at least one task, e.g. --tasks 100."
    count = parse_number("number of tasks", flags.tasks, hint, "whole number")
    if not entries:
        entries.append({})
    if "scores" in entries[0]:
        raise ProblemError(
            f"--tasks {flags.tasks} does not go with the scores in {flags.problem}, which have one row per task.",
            "Leave --tasks out.",
        )
    entries[0]["count"] = count


def _set_scores(entries: list[Table], flags: ProblemFlags) -> None:
    if flags.scores is not None:
        _only_one(entries, f"--scores {flags.scores}", flags)
        if not entries:
            entries.append({})
        for key in ("count", "prior"):
            entries[0].pop(key, None)
        entries[0]["scores"] = {**_scores_of(entries[0]), "file": flags.scores}
    scored = [entry for entry in entries if "scores" in entry]
    for key, given in (("score-column", flags.score_column), ("strength", flags.strength)):
        if given is not None and not scored:
            raise ProblemError(f"--{key} {given} needs scores.", "Add --scores FILE.")
    for entry in scored:
        scores = entry["scores"] = _scores_of(entry)
        if flags.score_column is not None:
            scores["column"] = flags.score_column
        if flags.strength is not None:
            scores.pop("accuracy", None)
            scores["strength"] = parse_number("strength", flags.strength, "Give e.g. --strength 4: worth four labels.")
        if flags.accuracy is not None:
            scores.pop("strength", None)
            scores["accuracy"] = _accuracy(flags.accuracy)
            entry.pop("threshold", None)


def _set_priors(entries: list[Table], flags: ProblemFlags) -> None:
    """Threshold, weights, and workers of known accuracy; a file's threshold is dropped where it has no meaning."""
    for entry in entries:
        if flags.threshold is not None:
            hint = "Give a number between 0 and 1, e.g. 0.5."
            entry["threshold"] = parse_number("threshold", flags.threshold, hint)
        if flags.prior is not None:
            if "scores" in entry:
                raise ProblemError(
                    f"--prior {flags.prior} does not go with the scores in {flags.problem}, which are the priors.",
                    "Leave --prior out.",
                )
            entry["prior"] = parse_prior(flags.prior)
            if not _thresholded(entry["prior"]) and flags.threshold is None:
                entry.pop("threshold", None)
        if flags.accuracy is not None and "scores" not in entry:
            before = _one_coin(entry) or {"kind": "one-coin", "probability": 0.5}
            entry["prior"] = {**before, "accuracy": _accuracy(flags.accuracy)}
            entry.pop("threshold", None)
    if flags.truth is None:
        return
    coins = [entry["prior"] for entry in entries if _one_coin(entry) is not None]
    if not coins:
        raise ProblemError(f"--truth {flags.truth} is for workers of known accuracy.", "Add e.g. --accuracy 0.8.")
    for prior in coins:
        prior["probability"] = parse_number("truth", flags.truth, "Give P(truth is 1), e.g. --truth 0.5.")


def _set_rewards(entries: list[Table], flags: ProblemFlags) -> None:
    reward: Table | None = None
    if flags.utility is not None:
        reward = {"kind": "utility", "matrix": parse_matrix(flags.utility)}
    elif flags.value is not None:
        value = parse_number("value", flags.value, "Give what a correct task is worth, e.g. --value 10.")
        reward = {"kind": "accuracy", "value": value}
    elif flags.reward is not None:
        reward = {"kind": flags.reward}
    if reward is not None:
        for entry in entries:
            entry["reward"] = dict(reward)
    if flags.abstain is None:
        return
    rewards = [entry.get("reward") for entry in entries]
    able = [table for table in rewards if isinstance(table, dict) and table.get("kind") == "utility"]
    if not able:
        raise ProblemError(
            f"--abstain {flags.abstain} is for a utility matrix.",
            'Add --utility; "1,0;0,1" is 1 for a right decision and 0 for a wrong one.',
        )
    for table in able:
        table["abstain"] = parse_number("abstain", flags.abstain, "Give the value of not deciding, e.g. --abstain 0.3.")


def _only_one(entries: list[Table], given: str, flags: ProblemFlags) -> None:
    if len(entries) > 1:
        flag = given.split()[0]
        raise ProblemError(
            f"{given} does not say which of {len(entries)} classes in {flags.problem} is meant.",
            f"Leave {flag} out and edit the file.",
        )


def _scores_of(entry: Table) -> Table:
    """The scores table of an entry, empty where there is none."""
    scores = entry.get("scores", {})
    if not isinstance(scores, dict):
        raise ProblemError("scores have no file.", 'Write e.g. scores = {file = "items.csv", strength = 4}.')
    return scores


def _one_coin(entry: Table) -> Table | None:
    """The prior of an entry, if it describes workers of known accuracy."""
    prior = entry.get("prior")
    return prior if isinstance(prior, dict) and prior.get("kind") == "one-coin" else None


def _thresholded(prior: list[float] | Table) -> bool:
    """Whether the truth under this prior depends on a threshold."""
    from nextlabel.problem.tables import prior_from

    return prior_from(prior).thresholded


def _accuracy(text: str) -> int | float:
    return parse_number("accuracy", text, "Give the chance that one answer is right, e.g. --accuracy 0.8.")


def describe(problem: Problem, pending: str = "wait") -> str:
    """The problem in one line; ``pending`` says what becomes of labels in flight at the last arrival."""
    from nextlabel.problem.tasks import different_rewards

    rewards = list(dict.fromkeys(reward.describe() for reward in different_rewards(problem.classes)))
    parts = [_prior(problem.classes[0]) if len(problem.classes) == 1 else f"{len(problem.classes):,} classes"]
    if len(problem.classes) > 1 and problem.answers > 2:
        parts.append(f"{problem.answers} answers")
    if not problem.is_accuracy:
        parts.append(rewards[0] if len(rewards) == 1 else f"{len(rewards)} rewards")
    cost = f" at {problem.label_cost:g} each" if problem.label_cost > 0 else ""
    if problem.workers:
        return (
            f"{counted(problem.tasks, 'task')} ({', '.join(parts)}), {counted(problem.budget, 'label')}{cost}, "
            f"{counted(len(problem.workers), 'type')} of workers"
        )
    rate = problem.arrival_rate
    arrivals = f"arrival rate {rate:g}" if isinstance(rate, float) else rate.describe()
    end = "every label awaited" if pending == "wait" else "labels in flight at the last arrival dropped"
    return (
        f"{counted(problem.tasks, 'task')} ({', '.join(parts)}), {counted(problem.budget, 'label')}{cost}, "
        f"{arrivals}, completion rate {problem.completion_rate:g}, "
        f"{f'horizon {problem.horizon:g}' if problem.finite else end}"
    )


def _prior(one: TaskClass) -> str:
    if one.prior.kind in ("one-coin", "fact"):
        return one.prior.describe()
    threshold = f", threshold {one.threshold:g}" if one.prior.thresholded else ""
    return f"prior {one.prior.describe()}{threshold}"


def problem_fields(problem: Problem) -> dict[str, Any]:
    """What was solved, for JSON; a horizon of null waits for every label, a period of null never repeats."""
    from nextlabel.problem.tables import reward_table, worker_table
    from nextlabel.problem.tasks import different_rewards, kinds_of_priors

    rate = problem.arrival_rate
    pieces, period = (rate, None) if isinstance(rate, float) else (rate.pieces, rate.period)
    return {
        "tasks": problem.tasks,
        "classes": len(problem.classes),
        "answers": problem.answers,
        "priors": kinds_of_priors(problem.classes),
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
    from nextlabel.problem.tables import answers_text

    answers = answers_text(worker)
    if worker.supply is not None:
        return f"{answers}, {counted(worker.supply, 'label')}"
    return answers if worker.arrival_rate is None else f"{answers}, arrival rate {worker.arrival_rate:g}"


def _costs(problem: Problem) -> bool:
    """Whether labels cost something."""
    return problem.label_cost > 0 or any(worker.cost > 0 for worker in problem.workers)
