"""The figures of the studies, drawn from their rows: one module for each study."""

from nextlabel.experiments.figures.beyond import draw as beyond
from nextlabel.experiments.figures.delay import draw as delay
from nextlabel.experiments.figures.exact import draw as exact
from nextlabel.experiments.figures.fig1 import draw as fig1
from nextlabel.experiments.figures.fig2 import draw as fig2
from nextlabel.experiments.figures.growth import draw as growth
from nextlabel.experiments.figures.indexability import draw as indexability
from nextlabel.experiments.figures.workers import draw as workers

__all__ = ["beyond", "delay", "exact", "fig1", "fig2", "growth", "indexability", "workers"]
