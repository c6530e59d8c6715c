"""Check the certificate in a guarantee's file, without nextlabel: python check.py results.guarantee.json."""

import hashlib
import json
import sys
from fractions import Fraction
from math import comb, floor


def check(g: dict) -> None:
    """Raise AssertionError with the reason if the statement does not follow from the file."""
    eps, alpha, q = Fraction(g["at_most_wrong"]), 1 - Fraction(g["sure"]), Fraction(g["expert_wrong"])
    label, answer = {task: said for task, said, _ in g["labels"]}, g["answers"]
    about = [t for t in label if g["of"] is None or label[t] == g["of"]]
    number = {task: k for k, (task, _, _) in enumerate(g["labels"])}
    guarded = [t for t in about if t not in g["known"]]
    frozen = json.dumps([[t, s, repr(float(p))] for t, s, p in g["labels"]], separators=(",", ":"))
    assert hashlib.sha256(frozen.encode()).hexdigest() == g["frozen"], "labels were changed after the draw"
    r = floor(eps * len(about)) - floor(q * len(about)) + 1
    drawn = sorted(guarded, key=lambda t: hashlib.sha256(f"{g['entropy']}:{number[t]}".encode()).digest())
    audited = set(drawn[: g["audits"][g["look"]]])
    assert audited <= set(answer), "a drawn item has no answer"
    removed = {task for batch in g["removed"] for task in batch}
    assert removed <= set(answer), "an item that was taken away has no answer"
    kept = [t for t in guarded if t not in removed]
    if len([t for t in kept if t not in audited]) >= r:
        errors, n, K = sum(t in audited and answer[t] != label[t] for t in kept), len(guarded), len(audited)
        c = g["allowed"][g["look"]]
        assert errors <= c, f"{errors} audited errors are kept and {c} are allowed"
        ways = sum(comb(K, h) * comb(n - K, r + c - h) for h in range(c + 1))
        assert Fraction(ways, comb(n, r + c)) <= alpha, "the allowance is too large for this audit"
    assert g["seed"] is None or "--tests" in sys.argv, "the draw was made with a seed, for tests"


def main(arguments: list[str]) -> int:
    """Check the file; returns 0 if the statement follows from it."""
    with open(arguments[0], encoding="utf-8") as stream:
        content = json.load(stream)
    try:
        check(content)
    except AssertionError as reason:
        print(f"NOT certified: {reason}")
        return 1
    print(f"Checked: {content['sentence']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
