"""A simulated crowd that works through the HTTP API: each worker asks, thinks for a while, answers, asks again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock

import numpy as np

from nextlabel.campaign.replies import Lease
from nextlabel.client import Client

#: Seconds that a person takes for one review, and how many times as fast the demo's crowd is.
PERSON_S, FASTER = 18.0, 150.0
#: Reasons after which a worker goes home.
OVER = ("budget_spent", "finished", "nothing_left_for_you", "deadline_passed", "below_price")


def crowd(
    url: str, campaign: str, tokens: Mapping[str, str], says: Callable[[str, float], str], seed: int,
    labelled: Callable[[int], None],
) -> int:  # fmt: skip
    """Work until there is nothing left; ``says(task, u)`` answers by a uniform, ``labelled(n)`` hears of progress."""
    done, lock, stop = 0, Lock(), Event()

    def work(number: int, token: str) -> None:
        nonlocal done
        random = np.random.default_rng((seed, number))
        with Client(url, token) as client:
            while not stop.is_set():
                answer = client.ask(campaign)
                if not isinstance(answer, Lease):
                    if answer.reason in OVER:
                        return
                    stop.wait(0.1)
                    continue
                time.sleep(float(random.exponential(PERSON_S / FASTER)))
                client.tell(answer.id, says(answer.task, float(random.random())))
                with lock:
                    done += 1
                    labelled(done)

    with ThreadPoolExecutor(len(tokens)) as pool:
        jobs = [pool.submit(work, number, token) for number, token in enumerate(tokens.values())]
        try:
            wait(jobs)
        finally:
            stop.set()
        for job in jobs:
            job.result()
    return done
