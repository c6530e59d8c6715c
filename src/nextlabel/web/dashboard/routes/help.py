"""The page that says what the numbers mean."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/help/numbers")
async def numbers_page() -> Response:
    """Every number of the dashboard in a requester's words."""
    return page("dashboard/numbers.html", numbers=NUMBERS)


class Meaning(NamedTuple):
    """A number's name on the dashboard, what it says, and what to do with it or what not to read into it."""

    name: str
    says: str
    mind: str


NUMBERS = (
    Meaning(
        "Labels bought",
        "How many answers of workers count so far, and how many the budget allows. Labels in flight are items that "
        "workers have on their screens: their places in the budget are reserved.",
        "An answer that comes too late still counts if the budget has a place for it. The budget is never overspent.",
    ),
    Meaning(
        "Expected accuracy now",
        "If you stopped today and took the likeliest answer of each item, so many of 100 items would be right. Items "
        "without a label count too: there the likeliest answer is a guess.",
        "Without an audit or control questions no truth is known, and the page calls the number agreement, because "
        "that is what it is made of; 30 to 60 audited items make it an accuracy. "
        "It is worked out from the labels alone: workers who agree with the others count as good, and their answers "
        "weigh more. If your workers make the same mistakes, nobody notices from labels: on recorded crowds the number "
        "was 3 to 11 points too high. An audit tells. On drawn crowds whose workers err independently it was off by up "
        "to 3 points on average, and by up to 5 where workers are right only 6 times in 10.",
    ),
    Meaning(
        "95% interval",
        "How far off the expected accuracy may be by chance, and because little is known yet of the workers. It is "
        "meant for 95 of 100 campaigns whose workers err independently of each other; on drawn crowds it held in "
        "about 90, and in 75 to 83 where workers are right only 6 times in 10.",
        "It does not cover workers who are wrong together. It is wide at first and narrows as labels come in.",
    ),
    Meaning(
        "Corrected by audited items",
        "Somebody who knows has looked at items that were drawn at random. The share of all items that are right is "
        "corrected by how many of these were, with an interval that holds whatever the model believes.",
        "With few audited items the interval is wide, with a few hundred it is narrow. Trust this number where you "
        "have it.",
    ),
    Meaning(
        "Forecast",
        "The expected accuracy when the budget is spent, if workers stay as good as they have been and keep coming as "
        "they have. The range is that of chance and of what is not known of the workers.",
        "It counts no more labels than can be given: the items that each worker who has come has not had yet, quotas "
        "and blocks, and newcomers as often as they have come. "
        "It rests on the same model as the expected accuracy now, and is too high where that is.",
    ),
    Meaning(
        "At most",
        "No way of giving out the labels that are left could be expected to do better than this, under the assumption "
        "that is written beside it. If the labels contradict that assumption (the forecast is above it), it is "
        "withheld.",
        "It is far above the forecast while little is known of the workers: it supposes that somebody tells the rule "
        "who is good. It says that there is room, not how to use it. It takes a minute to work out, so larger "
        "campaigns have none.",
    ),
    Meaning(
        "Value of the next label",
        "0.02 means: the next label would make 0.02 more items right, that is, fifty labels would make one more item "
        "right. Compare it with what a label costs you and what a right item is worth to you.",
        "When it is near 0, more budget buys nothing: the items that are still doubtful stay so with these workers.",
    ),
    Meaning(
        "Probability of an item",
        "How sure the campaign is of the answer it shows. Of 100 items with a probability near 0.9, about 90 are "
        "right.",
        "This is what the results file has in its column probability. Items near one half are the ones to look at "
        "yourself. Items with one label are right somewhat more often than they say if the workers are good: 5 points "
        "in our tests. Allow for chance too: of 30 items with a probability of 0.85, 21 to 29 are right.",
    ),
    Meaning(
        "Agreement of a worker",
        "How often a worker's answers are those that the campaign now believes. Somebody who guesses agrees by chance: "
        "half of the time with two answers, a third of the time with three.",
        "A worker's own answers are part of what the campaign believes, so few labels say little. Somebody "
        "whose answers are noise gets no more work, unless the campaign serves everybody, and a banner offers to pause "
        "or block them.",
    ),
    Meaning(
        "Workers per minute, seconds per label",
        "How often workers come, and how long an answer takes, as learnt from the last few hundred of them.",
        "They decide how long a worker may hold an item, and, with a deadline, how many labels will come before it.",
    ),
    Meaning(
        "Learnt anew",
        "With every label its item and its worker are judged again. From time to time all labels are weighed together, "
        "and the log says so. Numbers may jump a little at that moment.",
        "When the budget is spent this happens once more, so that final results rest on all labels.",
    ),
)
