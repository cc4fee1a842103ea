"""Settings of the whole test run."""

import os

# Small tensors gain nothing from threads, and threads that wait for each other on busy cores are many times slower.
# Set before torch is imported, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
