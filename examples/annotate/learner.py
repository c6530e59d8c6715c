"""A learner for ``nextlabel annotate``: people's labels teach it, and it speaks of the rest.

    cd examples/annotate
    nextlabel annotate ID --model learner:learner --column text

Any object with ``fit`` and ``predict_proba`` will do; this one is a pipeline of scikit-learn.
"""

from __future__ import annotations

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

learner = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english"), LogisticRegression(C=10.0, max_iter=1000)
)
