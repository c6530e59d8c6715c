"""A problem in one sentence and as JSON, and what its value stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.problem.problem import Problem, TaskClass
    from nextlabel.problem.workers import WorkerType


def describe(problem: Problem, pending: str = "wait") -> str:
    """The problem in one line; ``pending`` says what becomes of labels in flight at the last arrival."""
    from nextlabel.problem.score_classes import different_rewards

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
    from nextlabel.problem.score_classes import different_rewards, kinds_of_priors
    from nextlabel.problem.tables import reward_table
    from nextlabel.problem.worker_tables import worker_table

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
    from nextlabel.problem.worker_tables import answers_text

    answers = answers_text(worker)
    if worker.supply is not None:
        return f"{answers}, {counted(worker.supply, 'label')}"
    return answers if worker.arrival_rate is None else f"{answers}, arrival rate {worker.arrival_rate:g}"


def _costs(problem: Problem) -> bool:
    """Whether labels cost something."""
    return problem.label_cost > 0 or any(worker.cost > 0 for worker in problem.workers)
