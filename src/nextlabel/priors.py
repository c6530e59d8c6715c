"""Priors of a task: what is known about it before its first label."""

from nextlabel.beliefs.beta import Beta, BetaMixture
from nextlabel.beliefs.density import Histogram, LogitNormal
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.fact import Fact, OneCoin
from nextlabel.beliefs.prior import Prior

__all__ = ["Beta", "BetaMixture", "Dirichlet", "Fact", "Histogram", "LogitNormal", "OneCoin", "Prior"]
