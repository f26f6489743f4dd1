"""Linear classifiers on frozen features: their draws, their tuning, their training.

``protocol`` has the two protocols, ``settings`` and ``score`` what goes in and comes out (both without torch),
``journal`` what makes a probe resumable, ``logistic`` the solver.
"""
