"""Jobs that need a process of their own: peak memory, and compilation from an empty cache."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

UNIT = 1e6 if sys.platform == "darwin" else 1e3  # ru_maxrss is in bytes there, in kilobytes here


def peak_mb() -> float:
    """The most memory this process has held, in MB.

    Linux counts in ru_maxrss what the parent held when it started us, so ask the kernel for our own high-water mark.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT


def bound_job(tasks: int, budget: int, priors: int = 1) -> dict[str, float]:
    """A scalar bound, kernels warmed up on a small problem of the same kind first."""
    import numpy as np

    import nextlabel as nl
    from benchmarks.timing import counting
    from nextlabel.solve.relaxed import RelaxedProblem, chunks

    def problem(tasks: int, budget: int, priors: int) -> nl.Problem:
        if priors == 1:
            return nl.Problem.identical(tasks=tasks, budget=budget)
        weights = np.random.default_rng(0).uniform(0.5, 5.0, size=(priors, 2))
        return nl.Problem.from_priors([(float(a), float(b)) for a, b in weights], budget)

    nl.upper_bound(problem(20, 24, min(priors, 20)))
    imports = peak_mb()
    whole = problem(tasks, budget, priors)
    pieces = len(chunks(whole.classes))
    with counting(RelaxedProblem, "at", lambda self, prices, *_: len(prices) * (len(self._pieces) == pieces)) as prices:
        begin = perf_counter()
        bound = nl.upper_bound(whole)
    return {
        "passes": sum(1 for n in prices if n > 0),
        "prices": sum(prices),
        "seconds": perf_counter() - begin,
        "value": bound.value,
        "relative_gap": bound.gap / bound.value,
        "peak_mb": peak_mb(),
        "imports_mb": imports,
    }


def many_job(tasks: int, budget: int) -> dict[str, float]:
    """One campaign of tasks of which no two are alike, by the index; kernels warmed up on a small one first."""
    import numpy as np

    import nextlabel as nl
    from nextlabel.policies.index import Index
    from nextlabel.policies.rollout_arrays import AHEAD
    from nextlabel.simulation.ranked_tasks import RankedCampaigns, ranked_tables

    weights = np.random.default_rng(0).uniform(0.5, 5.0, size=(tasks, 2))
    priors = [(float(a), float(b)) for a, b in weights]
    few, all_ = nl.Problem.from_priors(priors[:300], 900), nl.Problem.from_priors(priors, budget)
    RankedCampaigns(few, ranked_tables(few, Index())).play(0, 0, 1)
    begin = perf_counter()
    own = ranked_tables(all_, Index())
    middle = perf_counter()
    out = RankedCampaigns(all_, own).play(0, 0, 1)[0][0]
    end = perf_counter()
    left = own.D + AHEAD - np.repeat(np.arange(own.D + 1), np.arange(1, own.D + 2))
    found = np.isfinite(own.score[:, 0]).sum(axis=0)
    return {
        "table_seconds": middle - begin,
        "seconds": end - middle,
        "filled": own.facts.shape[0] * own.facts.shape[1],
        "indices": float(found.sum()),
        "visited": float(found @ ((left + 1) * (left + 2) // 2)),
        "per_task": float(out[0, 0]) / tasks,
        "peak_mb": peak_mb(),
    }


def million_scores(tasks: int) -> Any:
    """Tasks with a model's score each, no two alike, worth four labels; three labels per task."""
    import numpy as np

    import nextlabel as nl

    scores = np.clip(np.random.default_rng(0).beta(1.2, 0.8, tasks), 0.001, 0.999)
    return nl.Problem(nl.score_classes(scores, strength=4.0), 3 * tasks)


def scores_bound_job() -> dict[str, float]:
    """A bound with a score for each task, the making of the problem included; kernels warmed up on fewer first."""
    import nextlabel as nl
    from benchmarks.timing import counting
    from nextlabel.model.simplex import nodes_of
    from nextlabel.solve.relaxed import RelaxedProblem

    nl.upper_bound(million_scores(5000))
    imports = peak_mb()

    def visited(self: Any, prices: Any, *_: object) -> float:
        return float(len(prices) * len(self.problem.classes) * nodes_of(2, self.cut.depth))

    with counting(RelaxedProblem, "at", visited) as nodes:
        begin = perf_counter()
        bound = nl.upper_bound(million_scores(1_000_000))
        seconds = perf_counter() - begin
    return {
        "seconds": seconds,
        "visited": sum(nodes),
        "value": bound.value,
        "relative_error": bound.gap / bound.value,
        "groups": bound.groups,
        "peak_mb": peak_mb(),
        "imports_mb": imports,
    }


def scores_campaign_job() -> dict[str, float]:
    """One campaign with a score for each task, by the index, tables included; kernels warmed up on fewer first."""
    import numpy as np

    from nextlabel.policies.index import Index
    from nextlabel.simulation.ranked_tasks import RankedCampaigns, ranked_tables

    few = million_scores(2000)
    RankedCampaigns(few, ranked_tables(few, Index())).play(0, 0, 1)
    begin = perf_counter()
    problem = million_scores(1_000_000)
    own = ranked_tables(problem, Index())
    middle = perf_counter()
    out = RankedCampaigns(problem, own).play(0, 0, 1)[0][0]
    return {
        "table_seconds": middle - begin,
        "seconds": perf_counter() - begin,
        "indices": float(np.isfinite(own.score).sum()),
        "per_task": float(out[0, 0]) / problem.tasks,
        "most_labels": float(out[0, 2]),
        "peak_mb": peak_mb(),
    }


def crowd_campaign_job() -> dict[str, float]:
    """One large campaign by the policy ``crowd``, workers learnt; kernels warmed up on a small one first."""
    import numpy as np

    import nextlabel as nl
    from benchmarks.crowd_campaign import large_crowd
    from nextlabel.model.fact import Fact
    from nextlabel.model.problem import WorkerType
    from nextlabel.model.tasks import TaskClass
    from nextlabel.simulation.crowd import CrowdCampaigns, CrowdSetting, reference_values

    workers = tuple(WorkerType.of_accuracy(a, supply=200, count=5) for a in (0.9, 0.6))
    for problem in (nl.Problem((TaskClass(50, Fact(0.5)),), 150, workers=workers), large_crowd()):
        begin = perf_counter()
        setting, out = CrowdSetting.of(problem), np.zeros(7)
        CrowdCampaigns(setting, "crowd", True, True, reference_values(setting, True), 0).play(0, out)
        spent = perf_counter() - begin
    bound = nl.upper_bound(problem)
    return {
        "seconds": spent,
        "per_task": out[0] / problem.tasks,
        "gap_percent": 100.0 * (1.0 - out[1] / bound.value),
        "gigabytes": peak_mb() / 1e3,
    }


def compile_job() -> dict[str, float]:
    """Every kernel's first call, then the same calls again: the difference is compilation.

    Compilation keeps one core busy, so that the processor's time is what it takes on a machine that does nothing else.
    """
    import nextlabel as nl

    small = nl.Problem.identical(tasks=3, budget=4)
    soon = nl.Problem.identical(tasks=3, budget=4, horizon=20.0)

    def demo(problem: nl.Problem) -> None:
        nl.upper_bound(problem)
        nl.exact_value(problem)
        nl.policy_value(problem, nl.index_table(problem).policy_index)

    def everything() -> None:
        for problem in (small, soon):
            demo(problem)
            nl.upper_bound(problem, "per-arrival")
            nl.check_indexability(problem)

    def first_less_second(job: Callable[[], object]) -> float:
        spent = []
        for _ in range(2):
            begin = perf_counter()
            job()
            spent.append(perf_counter() - begin)
        return spent[0] - spent[1]

    began = process_time()
    bound = first_less_second(lambda: nl.upper_bound(small))
    shown = bound + first_less_second(lambda: demo(small))
    shown_cpu = process_time() - began
    whole = shown + first_less_second(everything)
    return {"bound": bound, "demo": shown, "demo_cpu": shown_cpu, "all": whole, "all_cpu": process_time() - began}


JOBS = {
    "million": lambda: bound_job(1_000_000, 3_000_000),
    "priors": lambda: bound_job(100_000, 300_000, 100_000),
    "many": lambda: many_job(100_000, 300_000),
    "scores_bound": scores_bound_job,
    "scores_campaign": scores_campaign_job,
    "crowd_campaign": crowd_campaign_job,
    "compile": compile_job,
}

if __name__ == "__main__":
    json.dump(JOBS[sys.argv[1]](), sys.stdout)
