"""The languages of the worker's page: every text in every language, none outside the catalogue, and a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import Formatter

import httpx
import pytest
from jinja2 import Environment
from playwright.sync_api import Browser, expect

from browser import PHONE, at, check_accessible, chromium
from nextlabel.campaign import replies
from nextlabel.campaign.declaration import LANGUAGES
from nextlabel.service.models import CreateCampaignRequest
from nextlabel.web import render
from nextlabel.web.pages import mount_pages
from nextlabel.web.render import FOLDER as STATIC
from nextlabel.web.worker import texts as module
from nextlabel.web.worker.page_view import ERRORS
from nextlabel.web.worker.texts import FINAL_REASONS, PLURALS, preferred, texts_for, worker_texts
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
ENGLISH = worker_texts("en")
OTHERS = [code for code in LANGUAGES if code != "en"]
#: Numbers for which a form may be written without digits, because it stands for them alone.
WITHOUT_DIGITS = {"zero", "one", "two"}
WORDS = re.compile(r"[^\W\d_]{2,}")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("texts"), pages=mount_pages) as running:
        yield running


def names(text: str) -> set[str]:
    """The placeholders of a text."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_language_has_a_file_and_rules() -> None:
    assert sorted(path.stem for path in module.FOLDER.iterdir()) == sorted(LANGUAGES) == sorted(PLURALS)
    allowed = CreateCampaignRequest.model_json_schema()["properties"]["language"]["anyOf"][0]["enum"]
    assert sorted(allowed) == sorted(LANGUAGES)
    assert {code for code in LANGUAGES if worker_texts(code).direction == "rtl"} == {"ar"}


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_there_with_the_same_placeholders(language: str) -> None:
    theirs = worker_texts(language)
    assert set(theirs.texts) == set(ENGLISH.texts)
    for key, english in ENGLISH.texts.items():
        text = theirs.texts[key]
        assert isinstance(text, str) == isinstance(english, str), key
        if isinstance(text, str) and isinstance(english, str):
            assert names(text) == names(english), key
            assert text.strip() == text != "", key
            continue
        assert isinstance(text, dict)
        assert set(text) == set(map(PLURALS[language], range(1000))), key
        for form, said in text.items():
            alone = form in WITHOUT_DIGITS and sum(PLURALS[language](n) == form for n in range(1000)) == 1
            assert names(said) in ([{"n"}, set()] if alone else [{"n"}]), (key, form)


@pytest.mark.parametrize("language", OTHERS)
def test_texts_are_translated(language: str) -> None:
    theirs = worker_texts(language)
    same = {key for key, text in theirs.texts.items() if text == ENGLISH.texts[key]}
    assert same <= {"page.item", "page.item_number"}, same  # 'Item' in Portuguese


def test_every_reason_error_and_note_has_texts() -> None:
    for reason in replies.REASONS:
        assert f"reasons.{reason}.heading" in ENGLISH and f"reasons.{reason}.text" in ENGLISH
    for key in (*ERRORS.values(), "refused", "bad_link", "preview"):
        assert f"errors.{key}.heading" in ENGLISH and f"errors.{key}.text" in ENGLISH
    assert set(replies.REASONS) >= FINAL_REASONS


def test_no_text_outside_the_catalogue() -> None:
    """Templates have no words between tags or in attributes that are read out, and the script has no sentences."""
    for path in sorted((render.TEMPLATES / "worker").glob("*.html")):
        source = re.sub(r"{% block (language|body_class) %}.*", "", path.read_text(encoding="utf-8"))
        data = "\x00".join(value for _, kind, value in Environment().lex(source) if kind == "data")
        for attribute in re.findall(r'(?:alt|aria-label|title|placeholder)="([^"\x00]+)"', data):
            assert not WORDS.search(attribute), (path.name, attribute)
        outside = re.sub(r"<[^>]*>|<[^>]*$|^[^<>]*>", " ", data.replace("\x00", ""))
        # what is left of '{% block title %} · nextlabel': the name of the program
        assert not WORDS.search(outside.replace("nextlabel", "")), (path.name, outside)
        for expression in re.findall(r"{{(.*?)}}|{%(.*?)%}", source):
            for literal in re.findall(r"\"([^\"]*)\"|'([^']*)'", "".join(expression)):
                assert " " not in "".join(literal).strip(), (path.name, literal)
    script = re.sub(r"//.*", "", (STATIC / "worker.js").read_text(encoding="utf-8"))
    for literal in re.findall(r"\"([^\"\n]*)\"|`([^`]*)`", script):
        said = "".join(literal)
        known = (
            said in ("use strict", "noopener noreferrer", "failed muted small")
            or "[" in said
            or said.startswith(".")
            or ", " in said
        )
        assert known or not re.search(r"[A-Za-z]{2,} [A-Za-z]", said), said


def test_time_left_in_words() -> None:
    said = [ENGLISH.time_left(s) for s in (-1, 59.2, 600, 7200, 10 * 86_400)]
    assert said == [
        "time is up, but an answer is still accepted", "60 seconds left", "10 minutes left", "2 hours left",
        "10 days left",
    ]  # fmt: skip
    arabic = worker_texts("ar")
    assert [arabic.time_left(s) for s in (2, 7, 30)] == ["بقيت ثانيتان", "بقيت 7 ثوانٍ", "بقيت 30 ثانية"]


@pytest.mark.parametrize(("header", "language"), [
    ("", "en"), ("de-CH, fr;q=0.8", "de"), ("nl, fr;q=0.8, en;q=0.9", "en"), ("ZH-tw", "zh"), ("nl;q=1, xx", "en"),
    ("ar;q=0", "en"), ("pt-BR;q=oops, es;q=0.1", "es"), ("hi;q=7", "en"), ("*", "en"), ("de;q=0.5, ar;q=0.5", "de"),
])  # fmt: skip
def test_a_browser_asks_for_a_language(header: str, language: str) -> None:
    assert preferred(header) == language
    assert texts_for("fr", header).language == "fr"


def enter(service: Service, http: httpx.Client, id: str) -> None:
    with service.http() as requester:
        made = requester.post(f"/campaigns/{id}/links", json={"workers": ["ann"]}).json()
    http.get(made["links"][0]["url"], follow_redirects=True)


def test_the_requester_chooses_or_the_browser_does(service: Service) -> None:
    service.campaign("chosen", tasks=2, language="de")
    service.campaign("browsers", tasks=2)
    with httpx.Client(base_url=service.url, timeout=120, headers={"accept-language": "fr-CA,fr;q=0.9"}) as http:
        enter(service, http, "chosen")
        assert 'lang="de" dir="ltr"' in http.get("/work/chosen").text
        enter(service, http, "browsers")
        page = http.get("/work/browsers").text
        assert 'lang="fr"' in page and "Passer cet élément" in page
        refused = http.get("/w/w3.forged.token")
        assert refused.status_code == 401 and "Ce lien ne fonctionne pas." in refused.text
        detail = http.post("/work/browsers", data={"move": "explode", "lease": "x"})
        assert (
            "Cela n’a pas fonctionné." in detail.text and '<p class="muted small" lang="en" dir="ltr">' in detail.text
        )
    with service.http() as requester:
        assert requester.get("/campaigns/chosen").json()["settings"]["language"] == "de"
        refused = requester.post("/campaigns", json={"budget": 5, "language": "tlh"})
        assert refused.status_code == 422 and "language" in refused.json()["detail"]


def test_right_to_left_in_a_browser(service: Service, chromium: Browser) -> None:
    """In Arabic the page is mirrored; its script speaks the same language, with the plurals of the page's own rules."""
    service.campaign("arabic", tasks=2, language="ar", lease_seconds=600, labels=["no", "yes"])
    with service.http() as requester:
        made = requester.post("/campaigns/arabic/links", json={"workers": ["ann"]}).json()
    with at(chromium) as page:
        page.goto(made["links"][0]["url"])
        expect(page.locator("html")).to_have_attribute("dir", "rtl")
        boxes = [
            page.locator(name).bounding_box()
            for name in (".campaign", ".standing", "#item", "#time", "[data-keys='1n']", "[data-keys='2y']")
        ]
        name, standing, item, time, first, second = [box["x"] for box in boxes if box is not None]
        assert name > standing and item > time and first > second
        expect(page.locator("#time")).to_have_text("بقيت 10 دقائق")
        page.wait_for_timeout(310)
        page.keyboard.press("y")
        expect(page.locator("#status")).to_have_text("تم الحفظ: yes.")
        check_accessible(page)
        for language in LANGUAGES:
            theirs = page.evaluate(
                "tag => Array.from({ length: 201 }, (_, n) => new Intl.PluralRules(tag).select(n))",
                worker_texts(language).tag,
            )
            assert theirs == [PLURALS[language](n) for n in range(201)], language
    with at(chromium, PHONE) as page:
        page.goto(made["links"][0]["url"])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
