"""Rewards: what a finished task is worth."""

from nextlabel.model.rewards import Accuracy, Reward, SquaredError, Utility

__all__ = ["Accuracy", "Reward", "SquaredError", "Utility"]
