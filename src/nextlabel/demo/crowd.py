"""A simulated crowd that uses the HTTP API: each worker asks, thinks for a while, answers, and asks again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock

import numpy as np

from nextlabel.client import Client
from nextlabel.demo.sample import Person

#: Seconds that a person takes for one review, and how many times faster the demo's crowd is.
PERSON_S, SPEED_UP = 18.0, 150.0
#: Reasons after which a worker stops.
FINAL = ("budget_spent", "finished", "nothing_left_for_you", "deadline_passed", "below_price")


def crowd(
    url: str, campaign: str, tokens: Mapping[Person, str], truth: Mapping[str, str], seed: int,
    labelled: Callable[[int], None],
) -> int:  # fmt: skip
    """Work until nothing is left; ``tokens`` has each person's, ``labelled(n)`` reports progress."""
    done, lock, stop = 0, Lock(), Event()

    def work(number: int, person: Person, token: str) -> None:
        nonlocal done
        random = np.random.default_rng((seed, number))
        with Client(url, token) as client:
            while not stop.is_set():
                lease = client.ask(campaign)
                if not lease:
                    if lease.reason in FINAL:
                        return
                    stop.wait(0.1)
                    continue
                time.sleep(float(random.exponential(PERSON_S / SPEED_UP / person.speed)))
                client.tell(lease, person.says(truth[lease.task], float(random.random())))
                with lock:
                    done += 1
                    labelled(done)

    with ThreadPoolExecutor(len(tokens)) as pool:
        jobs = [pool.submit(work, number, *one) for number, one in enumerate(tokens.items())]
        try:
            wait(jobs)
        finally:
            stop.set()
        for job in jobs:
            job.result()
    return done
