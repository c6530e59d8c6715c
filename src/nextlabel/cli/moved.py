"""Commands and flags that have another name now: whoever types the old one is told the new one."""

from __future__ import annotations

COMMANDS = {
    "token": "token create; it replaces nobody's token unless you add --replace",
    "token rotate": "token revoke --links",
    "campaign gold": "campaign add ID --gold FILE",
    "campaign predictions": "campaign add ID --predictions FILE --model NAME",
    "campaign pause": "campaign change ID --pause",
    "campaign resume": "campaign change ID --resume",
    "campaign budget": "campaign change ID --budget N",
    "campaign deadline": "campaign change ID --deadline TIME",
    "campaign rename": "campaign change ID --name NAME",
    "campaign clock": "campaign change ID --accept-clock",
    "campaign worker": "campaign workers ID ACTION WORKER",
    "campaign revoke": "campaign links ID WORKERS... --revoke",
    "campaign events": "campaign export ID --rows events --format jsonl",
    "campaign rebuild": "campaign verify ID, with --repair to write",
    "webhook add": "campaign webhooks ID add URL",
    "webhook list": "campaign webhooks ID",
    "webhook test": "campaign webhooks ID test WEBHOOK",
    "webhook enable": "campaign webhooks ID enable WEBHOOK",
    "webhook remove": "campaign webhooks ID remove WEBHOOK",
    "webhook": "campaign webhooks ID",
    "prolific study": "platform study prolific ID",
    "prolific statuses": "platform statuses prolific ID",
    "prolific bonus": "platform bonus prolific ID",
    "prolific": "platform",
    "mturk question": "platform study mturk ID",
    "mturk bonus": "platform bonus mturk ID",
    "mturk": "platform",
    "label-studio push-results": "label-studio push",
}

FLAGS = {"backtest --in-flight": "--rho", "campaign audit --draw": "--audits"}


def new_name(arguments: list[str]) -> str | None:
    """One sentence for a command line that uses an old name; None if it uses none."""
    words = [one for one in arguments[:2] if not one.startswith("-")]
    for many in (2, 1):
        old = " ".join(words[:many])
        if len(words) >= many and old in COMMANDS and (old != "token" or len(words) == 1):
            if any(one in ("--help", "-h") for one in arguments) and old == "token":
                return None
            return f"'nextlabel {old}' has another name now: nextlabel {COMMANDS[old]}."
    for old, new in FLAGS.items():
        command, _, flag = old.rpartition(" ")
        if command in (" ".join(words[:1]), " ".join(words)) and any(
            one.partition("=")[0] == flag for one in arguments
        ):
            return f"{flag} of 'nextlabel {command}' is {new} now."
    return None
