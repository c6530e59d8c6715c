"""Priors of a task: what is known about it before its first label."""

from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.density import Histogram, LogitNormal
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import Fact, OneCoin
from nextlabel.model.prior import Prior

__all__ = ["Beta", "BetaMixture", "Dirichlet", "Fact", "Histogram", "LogitNormal", "OneCoin", "Prior"]
