"""What the log of a campaign says: append-only, numbered from 1, and all that a campaign is can be rebuilt from it.

============ ===================================================================================================
kind         data
============ ===================================================================================================
created      config, rate_memory (observations that the rates remember)
tasks_added  first (number), tasks [[key, payload, class], ...], classes [prior, ...] that are new, batch (key, if any),
             places [uniform, ...] of the tasks in their group, ranked (from now on tasks are chosen by a score of
             their own), digest of the batch so far
             hidden: nobody gets these tasks, and nothing counts them, before they are published
tasks_published first, tasks (how many were hidden), classes that are new, batch, digest, ranked: an
             import is complete, and all of its tasks are there at once
batch_ended  batch, digest: the batch ended with tasks that were there already
leased       lease, task, worker, expires_at, state [class, node, w], left (labels), rho of the tables or version of
             the model (``model``); control: it is a control question, free: not paid from the budget; waited: others
             were waited for in vain, and nobody is turned away before the next refit
turned_away  worker, model (version), left (labels), arrivals (asks that are expected): the worker's label is not worth
             its price at present; one event for each worker and version of the model
noticed      notices [[kind, worker, labels], ...] that hold from now on (``campaign.notices``), new (those of them that
             were not there before)
labelled     lease, label, counted, last (the task can have no more labels), comment (of the worker, if there is one)
late         lease, label, counted, last, comment
predicted    worker (a model), first (number of the first lease), tasks, labels: one lease for each, answered at once;
             cost (of one, in labels), charged (labels of the budget that the whole upload costs, or 0)
predictions_dropped worker (a model), reason, labels (how many): they are left out of the results
predictions_restored worker, labels: they are taken in again
features_added items, tasks, numbers, texts, hash: features of items were added to those that were there; from now on
             they are those of that hash
expired      lease
released     lease, comment
renewed      lease, expires_at
undone       lease, label
self_assigned lease, task, worker: the worker took the task without being given it; a lease that is over stands for it
withdrawn    lease, label, counted: the label was deleted where it was given; the budget has its price back
paused       because: the sentence that says why, if the campaign paused itself (``stop_at``)
resumed      --
changed      the new value of each setting that changed (``campaign.settings``)
worker_paused  worker, reason: no new task for this worker
worker_blocked worker, reason, leases: none at all; the leases that the worker held have ended
worker_restored worker: the worker gets tasks again
worker_erased worker: what the worker is called from now on, in earlier events too (``states.erased_number``)
labels_dropped worker, reason, leases [[lease, label], ...]: labels that were bought and are left out of the results
labels_restored worker, leases [[lease, label], ...]: dropped labels that are taken in again
audit_drawn  tasks that were drawn at random for an audit, seed
audit_answered answers [[task, answer], ...] that the expert found
gold_set     answers [[task, answer], ...] that the requester knows: these tasks are control questions
adjudicated  answers [[task, answer], ...] that the requester set: final, and known to the model from then on
adjudication_undone tasks whose answer follows from their labels again
guarantee_drawn labels were frozen and items drawn for an expert: at_most_wrong, sure, items, too_many, audits, allowed,
             labels and probability of each task, known [[task, answer, source], ...], frozen (their hash), entropy of
             the draw, frozen_at, given, of (the label that it is about, if one), before (hashes of earlier draws),
             crowd [tasks, workers, answers] of the labels that order the items (policy crowd); asked (tasks), removed,
             to_go, certified, sentence as below
guarantee_answered answers [[task, answer], ...] of the expert; at the end of a batch: removed [[task, ...], ...] (what
             the walk took away), asked (tasks that are next), to_go (about how many yet), certified, sentence
guarantee_looked look: more items were drawn along the same permutation; asked, removed, to_go, certified, sentence
guarantee_reopened certified: labels decide again, and if there was a certificate, it is void
refitted     version of the model of tasks and workers that leases are chosen by from now on (policy crowd), labels and
             tasks that it rests on, given, left (labels given out, and to come), budget, workers, shares (of the
             truths), history [[labels, expected accuracy, ends of its interval], ...] of the refits so far, next
             (labels given at which it is due again), arrivals (asks that are expected, where workers may be turned
             away), learner (hash of what it says of the tasks, bits per task, agrees: with how many labels, log loss
             per task with and without it; null: none any more), expert (what a task is worth at least, if an expert
             waits), upto (the last event that it looked at, if it was made in the background: the events since then
             move it like any others)
refitting    a refit of the labels up to this event has begun; version, labels, tasks, given, left, budget, next of it
tuned        rho, arrival_rate, completion_rate: tables follow the rates that were learnt
closed       reason: why no task of the campaign gets another label
reopened     --
rebuilt      table, rows (how many of it did not follow from the events before and were written anew)
clock_accepted before (time of the event before it); expires_at if that was a later time: no lease lasts longer
============ ===================================================================================================

Everything that a constant of the code, chance or a policy decided is in the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

KINDS: Final = (
    "created", "tasks_added", "tasks_published", "batch_ended", "leased", "labelled", "late",
    "predicted", "expired",
    "released", "renewed", "undone", "self_assigned", "withdrawn",
    "paused", "resumed", "changed", "tuned", "refitting", "refitted", "closed", "reopened", "clock_accepted",
    "rebuilt", "worker_paused", "worker_blocked", "worker_restored", "worker_erased", "labels_dropped",
    "labels_restored",
    "turned_away", "predictions_dropped", "predictions_restored", "features_added", "gold_set",
    "audit_drawn", "audit_answered", "adjudicated", "adjudication_undone", "noticed",
    "guarantee_drawn", "guarantee_answered", "guarantee_looked", "guarantee_reopened",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Number ``seq`` of a campaign's log, written at ``at`` (seconds since 1970)."""

    seq: int
    at: float
    kind: str
    data: dict[str, Any]
