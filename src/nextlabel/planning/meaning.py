"""What 'right' means in a plan, in words: it is the model's word, and the model is named."""

from __future__ import annotations

from nextlabel.beliefs.prior import Prior
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.problem.scores import ScoreClasses


def right_means(problem: Problem) -> str:
    """What it is to be right, or worth something, under the problem's model."""
    if not problem.is_accuracy:
        return "The value of a task is the reward that it is expected to bring under the model."
    if problem.workers:
        return (
            "'Right' means that the decision is the task's truth, if workers answer as their channels say and "
            "independently of each other given the truth."
        )
    classes = problem.classes[:1] if isinstance(problem.classes, ScoreClasses) else problem.classes
    kinds = list(dict.fromkeys(_meaning(entry) for entry in classes))
    return f"'Right' means that the decision {' or, by the kind of task, '.join(kinds)}."


def _meaning(entry: TaskClass) -> str:
    prior: Prior = entry.prior
    if prior.kind == "one-coin":
        return "is the task's truth, if every answer is right with the same probability"
    if prior.thresholded:
        return (
            "is what the crowd would say if it were asked without end: 1 if more than "
            f"{entry.threshold:.4g} of its answers would be 1. Where the whole crowd is wrong, that is not the truth"
        )
    return (
        "is the answer that the crowd would give most often if it were asked without end. Where the whole crowd is "
        "wrong, that is not the truth"
    )
