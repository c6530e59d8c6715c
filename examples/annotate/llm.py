"""A language model for ``nextlabel annotate``, behind any address that speaks OpenAI's chat completions.

    export LLM_URL=http://127.0.0.1:11434/v1 LLM_MODEL=llama3.2 LLM_LABELS=negative,positive
    cd examples/annotate
    nextlabel annotate ID --model llm:label --column text --per-minute 60 --cost 0.01

A provider's key goes into ``LLM_KEY``. Whatever goes wrong is raised, and ``annotate`` calls again: after the seconds
that the server asks for where it says so (``retry_after``), and a little later each time where it does not. An answer
that is no label is asked for again too.
"""

from __future__ import annotations

import os

import httpx

URL, MODEL = os.environ.get("LLM_URL", "http://127.0.0.1:11434/v1"), os.environ.get("LLM_MODEL", "llama3.2")
LABELS = os.environ.get("LLM_LABELS", "no,yes").split(",")
QUESTION = os.environ.get("LLM_QUESTION", "Is the tone of this text positive?")
KEY = os.environ.get("LLM_KEY", "").strip()
http = httpx.Client(timeout=60.0, headers={"Authorization": f"Bearer {KEY}"} if KEY else {})


class TryLater(Exception):
    """The server is busy; ``retry_after`` is in seconds, None if it does not say."""

    def __init__(self, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def label(text: str) -> str:
    """One of LABELS for one text."""
    asked = f"{QUESTION} Answer with one of these words and nothing else: {', '.join(LABELS)}."
    messages = [{"role": "system", "content": asked}, {"role": "user", "content": str(text)}]
    response = http.post(f"{URL}/chat/completions", json={"model": MODEL, "temperature": 0, "messages": messages})
    if response.status_code in (429, 503):
        told = response.headers.get("retry-after", "")
        raise TryLater(f"status {response.status_code}", float(told) if told.isdigit() else None)
    response.raise_for_status()
    said = response.json()["choices"][0]["message"]["content"].strip().strip(".\"'").casefold()
    for one in LABELS:
        if said == one.casefold():
            return one
    raise ValueError(f"the model said {said[:60]!r}")
