"""Check the certificate in a guarantee's file, without nextlabel: python check.py results.guarantee.json."""

import json
import sys
from fractions import Fraction
from hashlib import sha256
from math import comb, floor


def draw(h: int, items: int, marked: int, draws: int) -> Fraction:
    return Fraction(comb(marked, h) * comb(items - marked, draws - h), comb(items, draws))


def miss(n: int, r: int, looks: list) -> Fraction:
    """The largest chance that a look misses, for looks (audits, audited errors that may stay) along one draw."""
    at, errors, drawn, missed = {0: Fraction(1)}, 0, 0, Fraction(0)
    for K, c in looks:
        after: dict = {}
        for a, p in at.items():
            for x in range(min(r + c - errors, drawn - a) + 1):
                both = p * draw(x, n - errors, drawn - a, r + c - errors)
                for y in range((c - a - x if looks[-1][0] == K else min(K - drawn, r + c - a - x)) + 1):
                    after[a + x + y] = after.get(a + x + y, 0) + both * draw(y, n - drawn, r + c - a - x, K - drawn)
        missed += sum(p for a, p in after.items() if a <= c)
        at, errors, drawn = {a: p for a, p in after.items() if a > c}, r + c, K
    return missed


with open(sys.argv[1], encoding="utf-8") as stream:
    g = json.load(stream)
label, answer = {task: said for task, said, _ in g["labels"]}, g["answers"]
about, number = [t for t in label if g["of"] in (None, label[t])], {t: k for k, t in enumerate(label)}
frozen = json.dumps([[t, s, repr(float(p))] for t, s, p in g["labels"]], separators=(",", ":"))
guarded = [t for t in about if t not in g["known"]]
drawn = sorted(guarded, key=lambda t: sha256(f"{g['entropy']}:{number[t]}".encode()).digest())
audited, removed = {*drawn[: g["audits"][g["look"]]]}, {t for batch in g["removed"] for t in batch}
kept, r = {*guarded} - removed, floor(Fraction(g["at_most_wrong"]) * len(about)) + 1
r -= floor(Fraction(g["expert_wrong"]) * len(about))  # the expert's own errors come on top
looks, c = [(K, c) for K, c in zip(g["audits"], g["allowed"], strict=True) if c is not None], g["allowed"][g["look"]]
few = len(kept - audited) < r  # so few labels that nobody has checked cannot be too many
for holds, reason in (
    (g["seed"] is None or "--tests" in sys.argv, "the draw was made with a seed, for tests"),
    (sha256(frozen.encode()).hexdigest() == g["frozen"], "labels were changed after the draw"),
    (audited | removed <= {*answer}, "an item that was drawn or taken away has no answer"),
    (few or c is not None, "this look has too few audits"),
    (few or sum(answer.get(t) != label[t] for t in kept & audited) <= (c or 0), "too many audited errors are kept"),
    (few or miss(len(guarded), r, looks) <= 1 - Fraction(g["sure"]), "the allowances are too large for the audits"),
):
    if not holds:
        sys.exit(f"NOT certified: {reason}.")
print(f"Checked: {g['sentence']}")
