"""Threads of a worker: its share of the cores, said before NumPy or torch is imported, which read it then.

The first of our plugins for that reason. What a result depends on, the threads of torch within a case, is fixed by the
suite; this is for everything else.
"""

import os

from harness.devices import share_of_cores

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")

if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in VARIABLES:
        os.environ.setdefault(_name, str(share_of_cores()))
