"""Results: the types that functions, campaigns and clients return."""

from nextlabel.backtesting.result import Backtest
from nextlabel.campaign.events import Event
from nextlabel.campaign.external_answers import Skipped
from nextlabel.campaign.replies import (
    Added,
    AddedFeatures,
    AddedPredictions,
    AuditItem,
    ChangedLabels,
    Lease,
    NoTask,
    Receipt,
)
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.status import CampaignLinks, CampaignStatus
from nextlabel.campaigns.worker_reports import WorkerReport
from nextlabel.crowd.agreement import Agreement
from nextlabel.crowd.answers import Number, Rating
from nextlabel.crowd.audit import Audit
from nextlabel.crowd.guarantee import Guarantee, GuaranteeTerms
from nextlabel.crowd.learn import LearntCrowd, LearntWorker
from nextlabel.crowd.numbers import LearntNumbers
from nextlabel.crowd.questions import LearntLabels
from nextlabel.files.labels import LabelSummary, LabelTable
from nextlabel.learn.priors import LearntPrior
from nextlabel.learn.rates import Rates
from nextlabel.planning.report import Plan
from nextlabel.problem.tasks import ItemScores
from nextlabel.simulation.crowd_replay import CrowdReplayed
from nextlabel.simulation.study import Study
from nextlabel.solve.bound import Bound
from nextlabel.solve.crowd.from_labels import BoundFromLabels
from nextlabel.solve.exact import ExactResult
from nextlabel.solve.index import IndexTable

__all__ = [
    "Added",
    "AddedFeatures",
    "AddedPredictions",
    "Agreement",
    "Audit",
    "AuditItem",
    "Backtest",
    "Bound",
    "BoundFromLabels",
    "CampaignLinks",
    "CampaignStatus",
    "Certificate",
    "ChangedLabels",
    "CrowdReplayed",
    "Event",
    "ExactResult",
    "GivenLabel",
    "Guarantee",
    "GuaranteeTerms",
    "IndexTable",
    "ItemScores",
    "LabelSummary",
    "LabelTable",
    "LearntCrowd",
    "LearntLabels",
    "LearntNumbers",
    "LearntPrior",
    "LearntWorker",
    "Lease",
    "NoTask",
    "Number",
    "Plan",
    "Rates",
    "Rating",
    "Receipt",
    "Result",
    "Skipped",
    "Study",
    "WorkerReport",
]
