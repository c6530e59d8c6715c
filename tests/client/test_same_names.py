"""Campaign, Client and AsyncClient call the same things by the same names, with the same parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import nextlabel as nl

#: What a campaign inside a program can do and a client cannot, and why.
ONLY_CAMPAIGN = {
    "open": "a client opens a service",
    "set_answer": "for tools that run inside the program, such as the Label Studio bridge",
    "accept_clock": "for whoever keeps the database",
    "verify": "for whoever keeps the database",
    "rebuild": "for whoever keeps the database",
}
#: What needs a service: several campaigns, or an address that others reach.
ONLY_CLIENT = {
    "campaigns", "links", "revoke_links", "add_webhook", "test_webhook",
    "tokens", "create_token", "revoke_token", "set_owner", "activity",
}  # fmt: skip
#: Parameters of one side: a campaign is made in a store, with a clock; requests have a size, a worker's token a name.
OWN_PARAMETERS = {"create": {"url", "tasks", "clock", "score_column"}, "add_tasks": {"batch_size"}}
#: Methods of clients that do not take the campaign's id first.
WITHOUT_CAMPAIGN = {
    "create", "campaigns", "tell", "release", "renew", "undo", "close", "tokens", "create_token", "revoke_token",
    "activity",
}  # fmt: skip


def methods(kind: type) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}


def parameters(method: Any) -> list[str]:
    return [name for name in inspect.signature(method).parameters if name != "self"]


def of_client(kind: type, name: str) -> list[str]:
    found = parameters(getattr(kind, name))
    if name in WITHOUT_CAMPAIGN:
        return found
    assert found[0] == "campaign"
    return found[1:]


def test_both_clients_are_alike() -> None:
    assert methods(nl.Client).keys() == methods(nl.AsyncClient).keys()
    for name in methods(nl.Client):
        assert of_client(nl.Client, name) == of_client(nl.AsyncClient, name)


def test_a_client_has_the_methods_of_a_campaign() -> None:
    campaign, client = set(methods(nl.Campaign)), set(methods(nl.Client))
    assert campaign - client == set(ONLY_CAMPAIGN)
    assert client - campaign == ONLY_CLIENT


@pytest.mark.parametrize("name", sorted(set(methods(nl.Campaign)) - set(ONLY_CAMPAIGN)))
def test_their_parameters_are_the_same(name: str) -> None:
    own = OWN_PARAMETERS.get(name, set())
    ours = [one for one in parameters(getattr(nl.Campaign, name)) if one not in own]
    theirs = [one for one in of_client(nl.Client, name) if one not in own]
    assert ours == theirs


@pytest.mark.parametrize("kind", [nl.Campaign, nl.Client, nl.AsyncClient])
def test_every_method_is_documented(kind: type) -> None:
    for name, method in methods(kind).items():
        assert inspect.getdoc(method), name
