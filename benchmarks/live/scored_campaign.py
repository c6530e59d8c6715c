"""``python -m benchmarks.live.scored_campaign``: a live campaign with a model's score for each task, on SQLite.

Every score is another prior. Tasks are added, labels are asked for and told by workers in turn, and the certificate is
computed as it stands. ``--scores`` changes how many there are.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from nextlabel.application.service import CampaignService
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import open_store

PAIRS, WORKERS = 400, 8


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", type=int, default=100_000)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    scores = rng.beta(2, 2, given.scores).tolist()
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "scored.db"
        service = CampaignService(open_store(str(database)))
        config = CampaignSettings(budget=3 * given.scores, labels=("no", "yes"), policy="index", strength=4.0)
        begun, worked = perf_counter(), process_time()
        id = service.create(config, tasks=[{"id": f"t{k}", "score": p} for k, p in enumerate(scores)]).id
        print(
            f"{given.scores:,} tasks added in {perf_counter() - begun:.0f} s ({process_time() - worked:.0f} s of the "
            f"processor), {service.store.row(id).classes:,} priors, load {os.getloadavg()[0]:.0f}"
        )
        begun = perf_counter()
        for k in range(PAIRS):
            reply = service[id].ask(f"w{k % WORKERS}")
            if isinstance(reply, Lease):
                service[reply.campaign].tell(reply.id, "yes" if rng.random() < 0.6 else "no")
        print(f"an ask and a tell {1e3 * (perf_counter() - begun) / PAIRS:.1f} ms, {PAIRS} pairs one after the other")
        worked = process_time()
        found = service.certificates.of(id)
        print(
            f"certificate: now {found.now:.5f}, at most {found.upper:.5f}, slack {found.slack:.1e}: "
            f"{process_time() - worked:.1f} s of the processor"
        )
        print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
