"""``nextlabel warm``: compile everything ahead, as when an image is built."""

from __future__ import annotations

import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from nextlabel.cli.options import verb
from nextlabel.cli.output import Said, say
from nextlabel.errors import NextlabelError

#: Every computation on a problem so small that nothing but compiling takes time; names in braces are files.
COMMANDS = (
    "bound --tasks 3 --budget 4",
    "bound --tasks 3 --budget 4 --prior 1,1,1",
    "bound --tasks 3 --budget 4 --horizon 3 --charge all",
    "bound --tasks 3 --budget 4 --arrival-rate 2 --prices per-arrival",
    "bound --scores {scores} --score-column score --strength 4 --budget 9",
    "bound --problem {crowd}",
    "exact --tasks 2 --budget 3 --policy index",
    "exact --tasks 2 --budget 3 --horizon 3",
    "index --tasks 2 --budget 3 --arrival-rate 2 --check",
    "simulate --tasks 3 --budget 4 --arrival-rate 2 --policy auto --policy index --policy okg --policy thompson "
    "--policy kg --policy apt --policy uncertainty --policy overlap --policy uniform --replications 2",
    "simulate --tasks 3 --budget 4 --prior 1,1,1 --policy auto --policy kg --policy uncertainty --replications 2",
    "simulate --scores {scores} --score-column score --strength 4 --budget 9 --policy kg --replications 2",
    "simulate --problem {crowd} --turn-away --replications 2",
    "plan --tasks 3 --budget 4",
    "plan --tasks 20 --target 0.6 --arrival-rate 2 --completion-rate 0.4 --horizon 10",
    "plan --problem {crowd} --target 0.6",
    "prior {labels}",
    "workers {labels} --gold {gold} --save {results}",
    "workers {labels} --budget 20",
    "guarantee {results} --worker-labels {labels}",
    "backtest {labels} --gold {gold} --replications 2 --policy index --policy crowd --policy uncertainty",
    "backtest {labels} --replay worker-first --turn-away --policy crowd-uncertainty --labels-per-task 2 "
    "--replications 2",
)
#: Tasks, and workers of two kinds.
CROWD = """budget = 9
[[tasks]]
count = 4
prior = {kind = "fact", probability = 0.5}
[[workers]]
accuracy = 0.9
supply = 8
[[workers]]
accuracy = 0.6
supply = 8
"""


@verb()
def warm() -> Said:
    """Compile all numerical code ahead, which takes minutes once: at the build of an image, or after an update.

    NUMBA_CACHE_DIR says where it is kept, and NUMBA_CPU_NAME=generic makes it fit other processors of the kind.
    """
    from nextlabel.cli.app import run

    begun = time.monotonic()
    say("Live campaigns ...")
    _label()
    with tempfile.TemporaryDirectory() as folder:
        files = _sample(Path(folder))
        for number, command in enumerate(COMMANDS, start=1):
            say(f"{number} of {len(COMMANDS)}: nextlabel {command.split()[0]} ...")
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as error:
                code = run(command.format(**files).split())
            if code != 0:
                said = error.getvalue().strip()
                raise NextlabelError(f"nextlabel {command} failed: {said}", "Report it with this sentence.")
    seconds = time.monotonic() - begun
    return Said({"seconds": round(seconds, 1)}, f"Everything is compiled, after {seconds:.0f} seconds.")


def _label() -> None:
    """Campaigns of each kind from the first lease to the certificate."""
    from nextlabel.application.service import Campaign
    from nextlabel.application.table_cache import crowd_compiled

    crowd_compiled().result()
    for settings in ({}, {"labels": ["a", "b", "c"]}, {"policy": "auto"}, {"policy": "index"}):
        campaign = Campaign.create("memory:", ["one", "two", "three"], budget=6, **settings)
        for worker in ("ann", "bob"):
            while lease := campaign.ask(worker):
                campaign.tell(lease, campaign.status().settings.labels[0])
        campaign.workers()
        campaign.certificate()
        campaign.close()


def _sample(folder: Path) -> dict[str, str]:
    """Files of labels and of truths: twelve items, four workers, of whom one is wrong now and then."""
    labels = [f"t{k},w{w},{(k + (w == k % 4 and k % 3 == 0)) % 2}" for k in range(12) for w in range(4)]
    rows = {
        "labels": ["task,worker,label", *labels],
        "gold": ["task,label", *(f"t{k},{k % 2}" for k in range(12))],
        "scores": ["id,score", *(f"t{k},0.{k + 2}" for k in range(4))],
    }
    for name, lines in rows.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "crowd.toml").write_text(CROWD, encoding="utf-8")
    return {"crowd": str(folder / "crowd.toml")} | {name: str(folder / f"{name}.csv") for name in (*rows, "results")}
