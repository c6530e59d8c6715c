"""Problem flags merged into the table of a problem file: flags win, and flags that contradict each other are refused.

A flag that describes tasks changes every [[tasks]] table. ``--scores`` replaces count and prior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nextlabel.cli.flag_values import parse_matrix, parse_number, parse_prior, parse_rate
from nextlabel.errors import ProblemError

if TYPE_CHECKING:
    from nextlabel.cli.problem_options import ProblemFlags

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
    for key, text in (("score-column", flags.score_column), ("strength", flags.strength)):
        if text is not None and not scored:
            raise ProblemError(f"--{key} {text} needs scores.", "Add --scores FILE.")
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
