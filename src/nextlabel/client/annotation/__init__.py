"""A model labels the tasks of a campaign as worker ``model:NAME``: ``nextlabel annotate`` (docs/annotate.md).

================ =====================================================================================================
module           what it is
================ =====================================================================================================
model_loading    ``module:function`` becomes the user's function or learner
answers          what a function may return, checked against the campaign's labels
calls            calls of the function: pace, retries, tasks that are given up
campaign         what is needed of a campaign, in this program or behind a service's address
predicting       all tasks, the least certain first, as predictions that cost what they cost
buying           tasks one by one by ask and tell, each label bought like a person's
learning         a learner is fitted to people's labels again and again, and votes on tasks that it was not fitted to
================ =====================================================================================================
"""
