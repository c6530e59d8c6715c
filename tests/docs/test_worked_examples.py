"""The worked examples of CONTRIBUTING.md are followed: setting, platform and command are where it says they will be."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

import nextlabel
from nextlabel.integrations.platform import Meaning, Platform, StatusChange
from nextlabel.integrations.platforms import PLATFORMS
from nextlabel.web.pages import mount_pages
from service_fixtures import on_sqlite

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")

LOOK = """
import nextlabel as nl
from docs.cli_reference import page
from nextlabel.campaign.settings import CampaignSettings, changes_of
from nextlabel.service.models import ChangeCampaignRequest, CreateCampaignRequest
from nextlabel.web.dashboard.setting_form import offered, setting_field
from nextlabel.web.render import environment

for model in (CreateCampaignRequest, ChangeCampaignRequest):
    assert model.model_json_schema()["properties"]["thanks"]["maxLength"] == 500
sections = dict(part.split("\\n", 1) for part in page().split("\\n## "))
for command in ("create", "change"):
    assert "`--thanks`" in sections[f"nextlabel campaign {command}"]
assert "thanks" in offered("workers") and "thanks" in offered("workers", changing=True)
html = environment().get_template("dashboard/macros.html").module.setting(setting_field("thanks", "Well done"))
assert "Thanks" in html and 'name="thanks"' in html and "Well done" in html and 'maxlength="500"' in html
try:
    CampaignSettings(budget=5, thanks="x" * 501)
except nl.errors.InputError as error:
    assert "should have at most 500 characters" in str(error)
with nl.Campaign.create("memory:", ["a"], budget=2, policy="okg", thanks="Bye") as campaign:
    assert campaign.status().settings.thanks == "Bye"
    assert campaign.change(thanks="").settings.thanks == ""
print("there")
"""


def example(word: str) -> str:
    """The block of Python that has a word."""
    return next(block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if word in block)


def test_a_new_setting_is_one_field(tmp_path: Path) -> None:
    package = tmp_path / "nextlabel"
    shutil.copytree(Path(nextlabel.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "campaign" / "declaration.py"
    source = file.read_text(encoding="utf-8")
    place = "    @field_validator("
    assert source.count(place) == 1
    file.write_text(source.replace(place, f"{example('thanks:')}\n{place}"), encoding="utf-8")
    paths = [str(tmp_path), str(Path(__file__).parents[2])]  # the package, and the checkout with its documents
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "there", done.stderr


def test_a_new_platform_is_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"Platform": Platform, "ClassVar": ClassVar, "Mapping": Mapping, "Meaning": Meaning}
    exec(example("Toloka"), names)
    monkeypatch.setitem(PLATFORMS, "toloka", names["Toloka"]())
    with on_sqlite(tmp_path, pages=mount_pages) as service:
        id = service.campaign("toloka", pay_per_label=0.1)
        with service.http() as http:
            link = http.post(f"/campaigns/{id}/links", json={}).json()["join"]["url"]
            with httpx.Client(timeout=120, follow_redirects=True) as browser:
                page = browser.get(link, params={"userId": "u7", "assignmentId": "a1"}).text
            lease = re.search(r'data-lease="([^"]+)"', page)
            assert lease is not None
            assert http.post(f"/leases/{lease[1]}/tell", json={"label": "yes"}).status_code == 200
            visit = http.get(f"/campaigns/{id}/visits", params={"platform": "toloka"}).json()["visits"][0]
            assert (visit["worker"], visit["id"]) == ("toloka:u7", "a1")
            assert http.get(f"/campaigns/{id}/bonuses", params={"platform": "toloka"}).text == "u7,0.10\n"
        visits = service.campaign_service.visits
        assert visits.status_changed("toloka", StatusChange("a1", "u7", "rejected"), service.clock()) == "rejected"
        worker = next(one for one in service.campaign_service.store.workers(id, 5) if one.worker == "toloka:u7")
        assert worker.standing == "blocked" and worker.reason == "Toloka: submission a1 is rejected"


def test_a_new_command_is_one_module(tmp_path: Path) -> None:
    package = tmp_path / "nextlabel"
    shutil.copytree(Path(nextlabel.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "cli" / "count.py").write_text(example("nextlabel count"), encoding="utf-8")
    app = package / "cli" / "app.py"
    source = app.read_text(encoding="utf-8")
    app.write_text(source.replace('"bound",', '"bound", "count",'), encoding="utf-8")
    (tmp_path / "labels.csv").write_text("task,label\na,1\na,0\nb,1\n", encoding="utf-8")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from nextlabel.cli.app import main; main()", "count", *words]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)

    assert json.loads(run("labels.csv", "--json").stdout) == {"tasks": 2, "labels": 3}
    assert run("labels.csv").stderr.endswith("labels.csv has 3 labels of 2 tasks.\n")
    refused = run("nothing.csv")
    assert refused.returncode == 2 and refused.stderr.startswith("error: ") and refused.stderr.count("\n") == 1
