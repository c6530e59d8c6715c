"""Several questions about one item, asked together, and what their answers say of items and workers.

======== ======================================================= ================== =================================
kind     answer                                                  parts              read out
======== ======================================================= ================== =================================
choice   one of some labels                                      one                the likeliest
rating   a step of a scale                                       one                the step with the least loss
multi    any of some labels                                      one for each label each label that is likelier than not
number   a number of a range (``crowd.numbers``)                 none, a *measure*  the mean
======== ======================================================= ================== =================================

A *part* is what has one true answer out of a few; measures come after the parts wherever both are columns. All answers
of a worker to an item are one number, the *code*, whose digits are the answers to the parts and measures
(``Form.digits``; where none was asked for there is a digit of its own), so that a form is one label of one lease.
*Options* are what a file has a column for: each answer of a choice or rating, and each label of a multi.

A number is right within the tolerance of its range, as in a campaign for numbers, so that the share of answers that are
right is one unit for all. The workers' channels to the parts of a question are learnt together, by classification EM
with soft beliefs:

====== ========= ============ ==================================================================================
symbol code      shape        meaning
====== ========= ============ ==================================================================================
p      belief    (K, Q, C)    P(truth of part q of item x)
n_jq   counts    (W, Q, C, C) worker j's answers (last axis) to part q by the truth, expected
m      usual     (C, C)       the crowd's mean channel over all parts; t_j the same with worker j's own odds of being
                              right, their *coin*
A_jq   elsewhere (W, Q, C, C) worker j's channel to the other parts: ``FIRM`` labels per truth of m and t_j, and counts
r_q    tendency  (Q, C, C)    how much more often than its workers elsewhere the crowd gives each answer to part q
s      strength  --           labels that A_jq r_q is worth in the channel of j to part q: the value of ``STRENGTHS``
                              under which the counts are most probable (Dirichlet-multinomial)
====== ========= ============ ==================================================================================

    channel of j to q  =  (s A_jq r_q + n_jq) / sum,    p_x,q ~ share_q  product of channels, own label out

So what a worker says of one label tells about the others as far as s is large: workers who are as good at every label
share all, workers who are not share little. Cost: ``SWEEPS`` passes over the labels in NumPy, 1 us per part and pass.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from scipy.special import gammaln, softmax

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.agreement import Agreement, measure
from nextlabel.crowd.answers import SHOWN, Answer, AnswerName, Number, Rating, check_options
from nextlabel.crowd.numbers import NumberFit, NumberLabels, fit_numbers
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import LabelTable, as_label_table
from nextlabel.files.tables import Frame
from nextlabel.wording import listed

Kind = Literal["choice", "rating", "multi", "number"]
#: Sweeps of a fit; labels per truth of a worker's mean channel, of the coin, and of a part's tendency.
SWEEPS, FIRM, COIN, ABILITY, TENDENCY = 30, 12.0, 2.0 / 3.0, 10.0, 60.0
#: Labels that a worker's channel over all parts may be worth in that to one of them.
STRENGTHS = tuple(4.0 * 2.0**k for k in range(8))
#: Share of labels that are right before any is seen, labels that this is worth, and pseudo-items of each truth.
RIGHT, HOLD, SHARE = 2.0 / 3.0, 20.0, 2.0
#: Keys of a question's table, an example, and labels of one question.
KNOWN = ("name", "text", "answer", "labels", "scale", "range", "loss", "only_if")
EXAMPLE, MOST_OPTIONS = '[{"name": "tone", "labels": ["good", "bad"]}]', 26
#: The largest code.
MOST_CODES = 2**53
#: Keys of the options on the workers' page; s and u are for skip and undo.
KEYS = "123456789abcdefghijklmnopqrtvwxyz"
#: What is written where none of the labels of a multi is true, and between those that are; answers to a single label,
#: and that there is none.
NONE, BETWEEN = "none", ";"
NOT_TRUE, TRUE, NOT_ASKED = "no", "yes", "not asked"


@dataclass(frozen=True)
class Question:
    """One question; ``name`` is empty if there are no others. It is asked ``only_if`` another got that label."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str = ""
    rating: Rating | None = None
    only_if: tuple[str, str] | None = None
    number: Number | None = None

    @property
    def hint(self) -> str:
        """What may be answered."""
        if self.number is not None:
            return "Give a number from {:g} to {:g}.".format(*self.number.ends)
        return f"Give one of {', '.join(self.labels)}."

    def number_of(self, label: object) -> int:
        """Number of a label's name, or of a number as in the log."""
        if self.number is not None:
            return self.number.number_of(label)
        name = str(label)
        if isinstance(label, bool) or name not in self.labels:
            of = f" of {self.name}" if self.name else ""
            raise InputError(
                f"label {name[:SHOWN]!r}{of} is not one of the campaign's.", f"Give some of {', '.join(self.labels)}."
            )
        return self.labels.index(name)

    def chosen(self, said: object) -> frozenset[int]:
        """The numbers of the labels of an answer: one, or any of a multi."""
        if self.kind != "multi":
            return frozenset({self.number_of(said)})
        if isinstance(said, str):
            said = [] if said.strip() in ("", NONE) else [one.strip() for one in said.split(BETWEEN)]
        if not isinstance(said, list | tuple | set | frozenset):
            example = json.dumps(self.labels[:2])
            raise InputError(f"{str(said)[:60]!r} is not a list of labels.", f"Give e.g. {example}.")
        return frozenset(map(self.number_of, said))


def _question(table: dict[str, Any]) -> Question:
    """A question from its table."""
    name, kind, labels, only_if = (
        table.get("name"),
        table.get("answer", "choice"),
        table.get("labels"),
        table.get("only_if"),
    )
    if kind == "pair":
        raise InputError("a pair is about two items, and a form asks about one.", "Make a campaign for pairs of it.")
    strange = next((key for key in table if key not in KNOWN), None)
    if strange is not None or not isinstance(name, str) or not name.strip() or kind not in get_args(Kind):
        what = "has no name" if strange is None else f"has the key {strange[:60]!r}"
        raise InputError(
            f"a question {what}, or its answer is none of {', '.join(get_args(Kind))}.",
            f"Known keys: {', '.join(KNOWN)}; e.g. {EXAMPLE}.",
        )
    check_options(kind, **{option: table.get(option) for option in ("scale", "loss", "range")})
    rating = Rating.parse(table.get("scale"), table.get("loss")) if kind == "rating" else None
    number = Number.parse(table.get("range")) if kind == "number" else None
    labels = list(rating.labels) if rating is not None and labels is None else labels
    fewest = 1 if kind == "multi" else 2
    if number is not None and None in (number.low, number.high):
        raise InputError(f"question {name[:SHOWN]!r} needs both ends of its range.", "Give e.g. range 0..100.")
    if number is not None and labels:
        raise InputError(f"question {name[:SHOWN]!r} asks for a number and has labels.", "Leave the labels out.")
    if number is None and (
        not isinstance(labels, list)
        or not fewest <= len(labels) <= MOST_OPTIONS
        or not all(isinstance(one, str) and one.strip() and len(one) <= SHOWN for one in labels)
        or len(set(labels)) < len(labels)
        or (rating is not None and tuple(labels) != rating.labels)
    ):
        raise InputError(
            f"the labels of question {name[:SHOWN]!r} are not {fewest} to {MOST_OPTIONS} different names.",
            'Give e.g. "labels": ["good", "bad"], and of a rating only its scale.',
        )
    if only_if is not None and (not isinstance(only_if, dict) or len(only_if) != 1):
        raise InputError(f"only_if of question {name[:SHOWN]!r} is not one answer.", 'Give e.g. {"tone": "bad"}.')
    asked = None if only_if is None else next((str(other), str(label)) for other, label in only_if.items())
    return Question(name.strip(), kind, tuple(labels or ()), str(table.get("text", "")), rating, asked, number)


class Part(NamedTuple):
    """A part: question and label (-1: all of them), its number of answers, its first option, the option it needs."""

    question: int
    label: int
    answers: int
    option: int
    needs: int


class Measure(NamedTuple):
    """A number: question, range, the option it needs."""

    question: int
    number: Number
    needs: int


@dataclass(frozen=True)
class Form(Answer):
    """Questions that are asked together.

    The number of an answer is its code. A belief has the probability of each option, after these how many labels chose
    it, and mean and standard deviation of each measure.
    """

    questions: tuple[Question, ...]
    name: ClassVar[AnswerName] = "multi"
    noun: ClassVar[str] = "several labels or questions"
    refuses: ClassVar[tuple[str, ...]] = ("prior", "features")

    def __post_init__(self) -> None:
        seen: dict[str, Question] = {}
        for one in self.questions:
            if one.name in seen:
                raise InputError(f"two questions are called {one.name!r}.", "Give each a name of its own.")
            if one.only_if is not None:
                asked = seen.get(one.only_if[0])
                if asked is None or asked.only_if is not None or one.only_if[1] not in asked.labels:
                    raise InputError(
                        f"question {one.name!r} depends on {one.only_if[0]!r} = {one.only_if[1]!r}.",
                        "Name an earlier question that is always asked, and one of its labels.",
                    )
            bad = next((name for name in one.labels if one.kind == "multi" and (BETWEEN in name or name == NONE)), None)
            if bad is not None:
                raise InputError(
                    f"a label of which any may be true is called {bad!r}.",
                    f"Call it otherwise: {BETWEEN!r} stands between labels, and {NONE!r} for none of them.",
                )
            seen[one.name] = one
        if np.prod(self._sizes[1].astype(np.float64)) > MOST_CODES:
            raise InputError(
                "the form has too many questions for one label.",
                "Ask at most 50 labels in all; a number is as many as 15 of them.",
            )

    @classmethod
    def parse(cls, text: str) -> Form:
        """The questions that a text of JSON describes: a list of tables with the keys ``KNOWN``."""
        try:
            tables = json.loads(text)
        except ValueError:
            tables = None
        if not isinstance(tables, list) or not tables or not all(isinstance(one, dict) for one in tables):
            raise InputError("the questions are not a list of tables in JSON.", f"Give e.g. {EXAMPLE}.")
        return cls(tuple(map(_question, tables)))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, question by question."""
        found = list[Part]()
        for option, (question, label) in enumerate(self._labels):
            one = self.questions[question]
            needs = -1 if one.only_if is None else self.option_of(*one.only_if)
            if one.kind == "multi":
                found.append(Part(question, label, 2, option, needs))
            elif label == 0:
                found.append(Part(question, -1, len(one.labels), option, needs))
        return tuple(found)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The numbers, question by question."""
        return tuple(
            Measure(question, one.number, -1 if one.only_if is None else self.option_of(*one.only_if))
            for question, one in enumerate(self.questions)
            if one.number is not None
        )

    @cached_property
    def _asked(self) -> tuple[Part | Measure, ...]:
        """What a digit of a code is for."""
        return (*self.parts, *self.measures)

    @cached_property
    def options(self) -> tuple[str, ...]:
        """Names of the options: labels, after the question's name if there are several."""
        return tuple(f"{one.name}: {name}" if one.name else name for one in self.questions for name in one.labels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parts and measures: of questions, and of the labels of which any may be true."""
        return tuple(
            self.options[part.option] if part.label >= 0 else self.questions[part.question].name for part in self.parts
        ) + tuple(self.questions[one.question].name for one in self.measures)

    @cached_property
    def _labels(self) -> tuple[tuple[int, int], ...]:
        """Question and label of each option."""
        return tuple((q, label) for q, one in enumerate(self.questions) for label in range(len(one.labels)))

    @cached_property
    def _said(self) -> tuple[Ints, Ints]:
        """Part and answer of each option: of a label of which any may be true answer 1."""
        first, multi = np.array([(part.option, part.label >= 0) for part in self.parts], np.int64).reshape(-1, 2).T
        option = np.arange(len(self.options))
        part = np.searchsorted(first, option, side="right") - 1
        return part, option - first[part] + multi[part]

    @property
    def labels(self) -> tuple[str, ...]:
        """The options."""
        return self.options

    @property
    def ranges(self) -> tuple[str, ...]:
        """Those of the measures."""
        return self.names[len(self.parts) :]

    @property
    def counted(self) -> int:
        """One: what was said of each option is counted in the beliefs."""
        return 1

    @property
    def width(self) -> int:
        """Two columns for each option and each measure."""
        return 2 * len(self.options) + 2 * len(self.measures)

    @property
    def answers(self) -> int:
        """C, the most answers of a part."""
        return max((part.answers for part in self.parts), default=2)

    @cached_property
    def _sizes(self) -> tuple[Ints, Ints, Ints]:
        """Of each part and measure: how many answers, how many digits of a code, and what a digit counts."""
        sizes = [(part.answers, part.needs >= 0) for part in self.parts]
        sizes += [(one.number.number_of(one.number.high) + 1, one.needs >= 0) for one in self.measures]
        answers, optional = np.array(sizes, dtype=np.int64).T
        return answers, answers + optional, np.cumprod([1, *(answers + optional)[:-1]])

    def columns(self, question: int) -> list[int]:
        """The parts of a question."""
        return [k for k, part in enumerate(self.parts) if part.question == question]

    # Answers and codes

    def option_of(self, question: str, label: str) -> int:
        """The place of an option."""
        return self.options.index(f"{question}: {label}" if question else label)

    @property
    def example(self) -> str:
        """How an answer may be written."""
        chosen = [
            frozenset({0}) if self._asks(one, [frozenset({0})] * k) else None for k, one in enumerate(self.questions)
        ]
        return self.name_of(self._code(chosen))

    def keys(self) -> tuple[str, ...]:
        """Digits, then letters, of the options and numbers as they stand on the page."""
        shown = sum(len(one.labels) or 1 for one in self.questions)
        return tuple(KEYS[k] if k < len(KEYS) else "" for k in range(shown))

    def number_of(self, label: object) -> int:
        """The code of an answer: a list of labels or their text, of several questions a table or its JSON."""
        said = label
        if len(self.questions) == 1 and not self.questions[0].name:
            return self._code([self.questions[0].chosen(said)])
        if isinstance(said, str):
            try:
                said = json.loads(said)
            except ValueError:
                said = None
        if not isinstance(said, Mapping):
            raise InputError("the answer is not a table of questions.", f"Give e.g. {self.example}.")
        strange = [name for name in said if name not in {one.name for one in self.questions}]
        if strange:
            names = listed([one.name for one in self.questions])
            raise InputError(f"there is no question {str(strange[0])[:60]!r}.", f"There are {names}.")
        return self._checked([None if said.get(q.name) is None else q.chosen(said[q.name]) for q in self.questions])

    def sent(self, text: str) -> int:
        """The code of the options that a form sends, by their places, and of numbers, each after its question's place
        and '='; what is not asked then is left out.
        """
        sent = text.split(",")
        places = {int(one) for one in sent if one.isdecimal() and len(one) < 4}
        numbers = {question: said for question, equals, said in (one.partition("=") for one in sent) if equals and said}
        chosen = list[frozenset[int] | None]()
        for number, one in enumerate(self.questions):
            labels = frozenset(x for place, (q, x) in enumerate(self._labels) if q == number and place in places)
            if one.number is not None and str(number) in numbers and self._asks(one, chosen):
                labels = one.chosen(numbers[str(number)])
            given = one.kind == "multi" or len(labels) == 1
            chosen.append(labels if given and self._asks(one, chosen) else None)
        return self._checked(chosen)

    def _checked(self, chosen: Sequence[frozenset[int] | None]) -> int:
        """The code of the labels of each question, None where it has no answer."""
        for one, labels in zip(self.questions, chosen, strict=True):
            asked = self._asks(one, chosen)
            if asked and labels is None:
                raise InputError(f"question {one.name!r} has no answer.", one.hint)
            if not asked and labels is not None:
                raise InputError(f"question {one.name!r} is not asked after this answer.", "Leave its answer out.")
        return self._code(chosen)

    def _asks(self, one: Question, chosen: Sequence[frozenset[int] | None]) -> bool:
        if one.only_if is None:
            return True
        question, label = self._labels[self.option_of(*one.only_if)]
        return label in (chosen[question] or ())

    def _code(self, chosen: Sequence[frozenset[int] | None]) -> int:
        code = 0
        for one, answers, place in zip(self._asked, *(x.tolist() for x in self._sizes[::2]), strict=True):
            labels, label = chosen[one.question], one.label if isinstance(one, Part) else -1
            digit = answers if labels is None else int(label in labels) if label >= 0 else min(labels)
            code += digit * place
        return code

    def digits(self, codes: Any) -> Ints:
        """(n, parts + measures) the answers of codes, -1 where none was asked for."""
        answers, radix, places = self._sizes
        found = np.asarray(codes, dtype=np.int64)[..., None] // places % radix
        return np.where(found == answers, -1, found)

    def labels_of(self, code: int) -> dict[str, list[str]]:
        """The labels of each question that was asked."""
        found: dict[str, list[str]] = {}
        for part, digit in zip(self._asked, self.digits(code).tolist(), strict=True):
            one = self.questions[part.question]
            if digit >= 0 and isinstance(part, Part):
                labels = found.setdefault(one.name, [])
                labels += [one.labels[digit]] if part.label < 0 else [one.labels[part.label]] * digit
            elif digit >= 0 and one.number is not None:
                found[one.name] = [one.number.name_of(digit)]
        return {one.name: found[one.name] for one in self.questions if one.name in found}

    def name_of(self, number: int) -> str:
        """An answer as a text: labels with ';' between them, of several questions a line of JSON."""
        said = self.labels_of(number)
        if list(said) == [""]:
            return BETWEEN.join(said[""]) or NONE
        multi = {one.name for one in self.questions if one.kind == "multi"}
        return json.dumps({q: some if q in multi else some[0] for q, some in said.items()}, ensure_ascii=False)

    def shown(self, number: int) -> str:
        """An answer as people read it."""
        said = self.labels_of(number)
        return ", ".join(
            f"{q}: {BETWEEN.join(some) or NONE}" if q else self.name_of(number) for q, some in said.items()
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The questions, a column of a file each; none if there is one without a name."""
        return tuple(one.name for one in self.questions if one.name)

    def cells(self, label: str | None) -> list[str]:
        """An answer in these columns, empty where it says nothing."""
        said = {} if label is None else self.labels_of(self.number_of(label))
        return [BETWEEN.join(said[name]) or NONE if name in said else "" for name in self.column_names]

    def options_of(self, codes: Any) -> Floats:
        """(n, options) 1 where an option was chosen."""
        part, answer = self._said
        return np.asarray(self.digits(codes)[..., part] == answer, dtype=np.float64)

    # Parts as items of their own

    @property
    def usual_answers(self) -> int:
        """The number of answers that most parts have; only these are judged together. 0 without any part."""
        return next((answers for answers, _ in Counter(part.answers for part in self.parts).most_common(1)), 0)

    def spread(self, task: Any, codes: Any) -> tuple[Ints, Ints, Ints]:
        """Item (counted by parts), row and answer of each part that was asked and has so many answers.

        Without any part, those of the first measure.
        """
        parts, said = len(self.parts), self.digits(codes)
        judged = self._sizes[0][:parts] == self.usual_answers if parts else np.ones(1, dtype=np.bool_)
        row, part = np.nonzero((said[:, : len(judged)] >= 0) & judged)
        return np.asarray(task, dtype=np.int64)[row] * len(judged) + part, row, said[row, part]

    # Beliefs

    def flat(self, belief: Floats) -> Floats:
        """(K, options) the probability of each option, from beliefs (K, parts, C)."""
        return np.asarray(belief[:, *self._said])

    def _read(self, chances: Floats) -> tuple[Ints, Floats]:
        """(K, parts + measures) the answers that are read out, -1 where none is asked for, and the chance of each."""
        belief, (part_of, answer_of) = np.zeros((len(chances), len(self.parts), self.answers)), self._said
        belief[:, part_of, answer_of] = chances[:, : len(self.options)]
        multi = [k for k, part in enumerate(self.parts) if part.label >= 0]
        belief[:, multi, 0] = 1.0 - belief[:, multi, 1]
        best = belief.argmax(axis=2)
        for k, part in enumerate(self.parts):
            rating = self.questions[part.question].rating
            if rating is not None:
                best[:, k] = rating.best(belief[:, k, : part.answers])
            if part.needs >= 0:  # what is needed is of an earlier question, which is always asked
                best[best[:, part_of[part.needs]] != answer_of[part.needs], k] = -1
        sure = np.take_along_axis(belief, best[:, :, None], axis=2)[:, :, 0]
        for one, normal in zip(self.measures, self.normal(chances), strict=True):
            said = one.number.best(normal)
            if one.needs >= 0:
                said[best[:, part_of[one.needs]] != answer_of[one.needs]] = -1
            best, sure = np.column_stack([best, said]), np.column_stack([sure, one.number.certainty(normal)])
        return best, sure

    def normal(self, chances: Floats) -> Floats:
        """(measures, K, 2) mean and standard deviation of each measure, of whole beliefs."""
        measured = chances[:, 2 * len(self.options) :]
        return np.moveaxis(measured.reshape(len(chances), len(self.measures), 2), 1, 0)

    def known(self, number: int, before: Floats | None = None) -> Floats:
        """(width,) the belief of an answer that is known."""
        chosen, said = self.options_of(number), self.digits(number)[len(self.parts) :]
        counts = np.zeros_like(chosen) if before is None else before[len(chosen) : 2 * len(chosen)]
        values = [one.number.known(max(int(x), 0)) for one, x in zip(self.measures, said, strict=True)]
        return np.concatenate([chosen, counts, *values])

    def counts(self, belief: Floats, counted: Sequence[int]) -> dict[str, int]:
        """How many labels chose each option."""
        return dict(zip(self.options, map(int, belief[len(self.options) :]), strict=False))

    def intervals(self, belief: Floats) -> dict[str, tuple[float, float]]:
        """Of each measure that is read out, by its question."""
        named = zip(self.names[len(self.parts) :], self.measures, self.normal(belief[None]), strict=True)
        asked = self._read(belief[None])[0][0, len(self.parts) :] >= 0
        return {
            name: one.number.intervals(normal[0])[""]
            for (name, one, normal), shown in zip(named, asked, strict=True)
            if shown
        }

    def margin(self, beliefs: Floats) -> Floats:
        """(K,) the certainty."""
        return self.certainty(beliefs)

    def best(self, beliefs: Floats) -> Ints:
        """(K,) the codes that are read out."""
        best, (answers, _, places) = self._read(beliefs)[0], self._sizes
        return np.asarray(np.where(best < 0, answers, best) @ places, dtype=np.int64)

    def _alike(self, first: Any, second: Any) -> Any:
        """(n, parts + measures) which answers are right where the others, digits too, are the truth."""
        alike = np.asarray(first == second)
        for m, one in enumerate(self.measures, len(self.parts)):
            near = one.number.agrees(first[..., m], second[..., m])
            alike[..., m] |= near & (first[..., m] >= 0) & (second[..., m] >= 0)
        return alike

    def agrees(self, first: Ints, second: Ints) -> Bools:
        """Which are right in every answer."""
        alike: Bools = self._alike(self.digits(first), self.digits(second)).all(axis=-1)
        return alike

    def shares_right(self, first: Ints, second: Ints) -> Floats:
        """(n,) the share of the answers that agree."""
        return np.asarray(self._alike(self.digits(first), self.digits(second)).mean(axis=1))

    def judged(self, beliefs: Floats, truth: Ints) -> Iterator[tuple[str, Floats, Bools]]:
        """Part by part, then the measures."""
        best, sure = self._read(beliefs)
        right = self._alike(best, self.digits(truth))
        for k, name in enumerate(self.names):
            yield name, np.where(best[:, k] < 0, np.nan, sure[:, k]), right[:, k]

    def place(self, question: str) -> int:
        """The column of a part or measure by its name."""
        if question not in self.names:
            raise InputError(f"there is no question {question[:60]!r}.", f"There are {listed(self.names)}.")
        return self.names.index(question)

    def chances(self, beliefs: Floats, question: str | None = None) -> Floats:
        """(K,) of one part or measure, or of all as if they were independent."""
        best, sure = self._read(beliefs)
        needs = np.array([one.needs for one in self._asked], dtype=np.int64)
        sure = np.where(best < 0, 1.0 - np.append(beliefs, np.zeros((len(beliefs), 1)), axis=1)[:, needs], sure)
        return np.asarray(sure.prod(axis=1) if question is None else sure[:, self.place(question)])

    def said_of(self, question: str | None, number: int, frozen: int) -> str:
        """The text of one part or measure, or of the whole form."""
        said, before = self.digits(number), self.digits(frozen)
        alike = self._alike(said, before)
        if question is None:
            return self.name_of(frozen if alike.all() else number)
        k = self.place(question)
        digit = int(before[k] if alike[k] else said[k])
        if digit < 0:
            return NOT_ASKED
        one = self._asked[k]
        return self.words(question)[digit] if isinstance(one, Part) else one.number.name_of(digit)

    def words(self, question: str | None) -> tuple[str, ...]:
        """Of a part."""
        k = len(self.parts) if question is None else self.place(question)
        if k >= len(self.parts):
            return ()
        part = self.parts[k]
        return (NOT_TRUE, TRUE) if part.label >= 0 else self.questions[part.question].labels

    def certainty(self, beliefs: Floats) -> Floats:
        """(K,) the share of the answers read out that is expected to be right."""
        best, sure = self._read(beliefs)
        asked = best >= 0
        return np.asarray((sure * asked).sum(axis=1) / asked.sum(axis=1))


class FormLabels(NamedTuple):
    """``task``, ``worker`` and ``codes`` (n,), ``said`` (n, parts + measures) of each; how many tasks and workers."""

    task: Ints
    worker: Ints
    codes: Ints
    said: Ints
    tasks: int
    workers: int


def form_agreement(form: Form, labels: FormLabels, tasks: tuple[Any, ...], workers: tuple[Any, ...]) -> Agreement:
    """How far whole answers agree, and the answers to each part."""
    parts = []
    for k, (name, part) in enumerate(zip(form.names, form.parts, strict=False)):
        one, asked = form.questions[part.question], labels.said[:, k] >= 0
        values, level = (None, form.level) if one.rating is None else (one.rating.values, one.rating.level)
        given = labels.task[asked], labels.worker[asked], labels.said[asked, k]
        parts.append((name, measure(*given, values, level, tasks, workers)))
    for m, data in enumerate(measured(form, labels)):
        different, place = np.unique(data.number, return_inverse=True)
        given = data.task, data.worker, place.astype(np.int64)
        level = form.measures[m].number.level
        parts.append((form.names[len(form.parts) + m], measure(*given, different, level, tasks, workers)))
    whole = np.unique(labels.codes, return_inverse=True)[1].astype(np.int64)
    alike = measure(labels.task, labels.worker, whole, None, form.level, tasks, workers)
    return replace(alike, parts=tuple(parts))


def measured(form: Form, labels: FormLabels) -> list[NumberLabels]:
    """The labels of each measure."""
    out = []
    for m, one in enumerate(form.measures, len(form.parts)):
        asked = labels.said[:, m] >= 0
        number = one.number.value_of(labels.said[asked, m])
        out.append(NumberLabels(labels.task[asked], labels.worker[asked], number, labels.tasks, labels.workers))
    return out


@dataclass(frozen=True, eq=False)
class FormFit:
    """Beliefs (K, parts, C), channels (W + 1, parts, C, C), the last those of a stranger, shares (parts, C).

    ``strength`` by question that has parts: what a worker's answers to all of these are worth for one, in labels.
    ``numbers``: what was learnt of each measure, None without labels.
    """

    belief: Floats
    channels: Floats
    share: Floats
    strength: tuple[float, ...]
    numbers: tuple[NumberFit | None, ...] = ()


def fit_form(form: Form, labels: FormLabels, gold: Ints, right: float = RIGHT) -> FormFit:
    """Learn items and workers from all labels; ``gold`` (K,) are known codes, -1 where none is."""
    K, W, P, C = labels.tasks, labels.workers, len(form.parts), form.answers
    belief, share = np.zeros((K, P, C)), np.zeros((P, C))
    channels, strength = np.tile(np.eye(C), (W + 1, P, 1, 1)), list[float]()
    known = np.where(gold[:, None] >= 0, form.digits(np.maximum(gold, 0)), -1)
    for columns in filter(None, map(form.columns, range(len(form.questions)))):
        c = form.parts[columns[0]].answers
        found = _linked(labels._replace(said=labels.said[:, columns]), known[:, columns], c, right)
        belief[:, columns, :c], channels[:, columns, :c, :c] = found.belief, found.channels
        share[columns, :c] = found.share
        strength += found.strength
    numbers = [
        fit_numbers(data, one.number) if len(data.task) else None
        for one, data in zip(form.measures, measured(form, labels), strict=True)
    ]
    return FormFit(belief, channels, share, tuple(strength), tuple(numbers))


def _linked(labels: FormLabels, gold: Ints, C: int, right: float) -> FormFit:
    """Parts with C answers each, whose channels are learnt together."""
    K, W, Q = labels.tasks, labels.workers, labels.said.shape[1]
    row, q = np.nonzero(labels.said >= 0)
    y, task, worker = labels.said[row, q], labels.task[row], labels.worker[row]
    cell, place = (worker * Q + q) * C + y, task * Q + q
    votes = np.bincount(place * C + y, minlength=K * Q * C).reshape(K, Q, C)
    told, fixed = votes.sum(axis=2), np.nonzero(gold >= 0)
    belief = (votes + 0.3 / C) / (told + 0.3)[:, :, None]
    idea = np.full((C, C), (1.0 - right) / (C - 1))
    np.fill_diagonal(idea, right)
    share, strength, counts, centre = np.full((Q, C), 1.0 / C), STRENGTHS[0], np.zeros((W, Q, C, C)), np.zeros(0)
    for _ in range(SWEEPS):
        belief[fixed] = np.eye(C)[gold[fixed]]
        seen = belief[task, q]
        counts = np.stack(
            [np.bincount(cell, seen[:, c], W * Q * C).reshape(W, Q, C) for c in range(C)], axis=2
        )  # fmt: skip
        centre = _centres(counts, idea)
        strength = max(STRENGTHS, key=lambda s: _evidence(counts, s * centre[:-1]))
        rows = strength * centre[:-1] + counts
        labelled = (told > 0)[:, :, None]
        share = (belief * labelled).sum(axis=0) + SHARE
        share /= share.sum(axis=1, keepdims=True)
        logp = np.tile(np.log(share), (K, 1, 1))
        whole = rows.sum(axis=3)
        for c in range(C):
            chance = (rows[worker, q, c, y] - seen[:, c]) / (whole[worker, q, c] - seen[:, c])
            logp[:, :, c] += np.bincount(place, np.log(np.maximum(chance, 1e-12)), K * Q).reshape(K, Q)
        belief = softmax(logp, axis=2)
    belief[fixed] = np.eye(C)[gold[fixed]]
    channels = strength * centre
    channels[:-1] += counts
    return FormFit(belief, channels / channels.sum(axis=3, keepdims=True), share, (strength,))


def _centres(counts: Floats, idea: Floats) -> Floats:
    """(W + 1, Q, C, C) what each channel is shrunk towards: A_jq r_q, for a stranger m r_q."""
    crowd = counts.sum(axis=(0, 1)) + HOLD * idea
    usual = crowd / crowd.sum(axis=1, keepdims=True)
    own, weight = counts.sum(axis=1), crowd.sum(axis=1) / crowd.sum()
    hit = np.diagonal(usual)
    mean = float(weight @ hit)
    right = (ABILITY * mean + np.trace(own, axis1=1, axis2=2)) / (ABILITY + own.sum(axis=(1, 2)))
    odds = hit / (1.0 - hit) * (right / (1.0 - right) / (mean / (1.0 - mean)))[:, None]
    coin = odds / (1.0 + odds)
    turned = usual * ((1.0 - coin) / (1.0 - hit))[:, :, None]
    turned[:, np.arange(len(hit)), np.arange(len(hit))] = coin
    elsewhere = (FIRM * ((1.0 - COIN) * usual + COIN * turned) + own)[:, None] - counts
    elsewhere /= elsewhere.sum(axis=3, keepdims=True)
    expected = (counts.sum(axis=3, keepdims=True) * elsewhere).sum(axis=0)
    tendency = (counts.sum(axis=0) + TENDENCY * usual) / (expected + TENDENCY * usual)
    stranger = np.broadcast_to(usual, (1, *elsewhere.shape[1:]))
    centre = np.concatenate([elsewhere, stranger]) * tendency
    return np.asarray(centre / centre.sum(axis=3, keepdims=True))


def _evidence(counts: Floats, prior: Floats) -> float:
    whole = prior.sum(axis=3)
    rows = gammaln(whole) - gammaln(whole + counts.sum(axis=3))
    return float((rows + (gammaln(prior + counts) - gammaln(prior)).sum(axis=3)).sum())


@dataclass(frozen=True, eq=False)
class LearntLabels:
    """Items of which any of ``form``'s labels may be true, and workers, learnt together."""

    form: Form
    task_names: tuple[Any, ...]
    worker_names: tuple[Any, ...]
    data: FormLabels
    gold: Ints
    fit: FormFit
    agreement: Agreement

    @cached_property
    def chances(self) -> Floats:
        """(K, labels) the probability of each label of each item."""
        return self.form.flat(self.fit.belief)

    def predict(self) -> list[str]:
        """The labels that are read out of each item, with ';' between them."""
        return [self.form.name_of(int(code)) for code in self.form.best(self.chances)]

    def tasks(self) -> Iterator[dict[str, Any]]:
        """One row for each item, as files have it."""
        told, sure = np.bincount(self.data.task, minlength=len(self.task_names)), self.form.certainty(self.chances)
        for k, (name, said) in enumerate(zip(self.task_names, self.predict(), strict=True)):
            each = {f"p_{one}": round(float(p), 6) for one, p in zip(self.form.labels, self.chances[k], strict=True)}
            known = None if self.gold[k] < 0 else self.form.name_of(int(self.gold[k]))
            row = {"task": name, "label": said, "probability": round(float(sure[k]), 6), **each}
            yield {**row, "labels": int(told[k]), "gold": known}

    def workers(self) -> Iterator[dict[str, Any]]:
        """One row for each named worker, those with the most labels first: how often they are right, by label."""
        many = np.bincount(self.data.worker, minlength=self.data.workers)
        right = np.trace(self.fit.channels, axis1=2, axis2=3) / 2.0
        for j in map(int, np.argsort(-many[: len(self.worker_names)], kind="stable")):
            each = {f"right_{one}": round(float(p), 4) for one, p in zip(self.form.labels, right[j], strict=True)}
            balanced = round(float(right[j].mean()), 4)
            yield {"worker": self.worker_names[j], "labels": int(many[j]), "balanced_accuracy": balanced, **each}

    def sentences(self) -> list[str]:
        """What was learnt, in plain English."""
        (worth,) = self.fit.strength
        more = (
            "as good at every label, as far as one can tell" if worth >= STRENGTHS[-1] else "not as good at each label"
        )
        return [
            f"Workers are {more}: what they say of the other labels is worth {worth:g} labels for each of them.",
            "balanced accuracy: how often a worker is right about a label if it were true as often as not; the "
            "probability of an item is the share of its labels that is expected to be right.",
        ]


def form_of(answers: Iterable[Any]) -> Form:
    """The form of all labels that occur in some answers, any of which may be true."""
    said = map(cell_text, answers)
    names = dict.fromkeys(one.strip() for text in said for one in text.split(BETWEEN) if one.strip() not in ("", NONE))
    if not names:
        raise InputError(
            "no answer has a label.", f"Write labels with {BETWEEN!r} between them, e.g. joy{BETWEEN}fear."
        )
    return Form((Question("", "multi", tuple(names)),))


def learn_labels(
    labels: LabelTable | str | os.PathLike[str] | Frame, gold: Mapping[str, str] | None = None
) -> LearntLabels:
    """Learn items and workers from answers of any labels, as ``a;b`` or ``none``; ``gold`` are known answers of items.

    >>> rows = [("a", "ann", "x;y"), ("a", "bob", "x"), ("b", "ann", "none"), ("b", "bob", "none")]
    >>> learn_labels(dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True))).predict()[1]
    'none'
    """
    table = as_label_table(labels)
    worker, workers = table.givers()
    known = {} if gold is None else gold
    form = form_of([*table.labels, *known.values()])
    codes = np.array([form.number_of(cell_text(one)) for one in table.labels], dtype=np.int64)[table.label]
    data = FormLabels(table.task, worker, codes, form.digits(codes), len(table.tasks), workers)
    truth = np.array([form.number_of(known[cell_text(t)]) if cell_text(t) in known else -1 for t in table.tasks])
    alike = form_agreement(form, data, table.tasks, tuple(range(data.workers)))
    return LearntLabels(form, table.tasks, table.workers, data, truth, fit_form(form, data, truth), alike)
