"""The learning rate of every step: a linear warm-up, then half a cosine down to zero."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WarmupCosine:
    """Learning rate as a plain function of the step, so that a resumed run needs no scheduler's state.

    Steps count from 0. Step ``s`` of ``w`` warm-up steps has ``peak * (s + 1) / w``; afterwards step ``s`` of ``n``
    has ``peak * (1 + cos(pi * (s - w) / (n - w))) / 2``: the first step after warm-up runs at the peak, and the rate
    would be zero one step after the last.

    >>> schedule = WarmupCosine(peak=0.8, warmup_steps=4, total_steps=8)
    >>> [round(schedule(step), 3) for step in range(8)]
    [0.2, 0.4, 0.6, 0.8, 0.8, 0.683, 0.4, 0.117]

    Source: Loshchilov and Hutter 2017, arXiv:1608.03983, eq. 5, without restarts.
    """

    peak: float
    warmup_steps: int  # fewer than total_steps
    total_steps: int

    @classmethod
    def for_run(cls, *, peak: float, warmup_epochs: float, epochs: int, steps_per_epoch: int) -> "WarmupCosine":
        """The schedule of a whole run; warm-up takes at most half of it, so that short runs also come down."""
        total_steps = epochs * steps_per_epoch
        return cls(peak, round(min(warmup_epochs * steps_per_epoch, total_steps // 2)), total_steps)

    def __call__(self, step: int) -> float:
        """The learning rate of a step, counted from 0 over the whole run."""
        if step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        return self.peak * (1 + math.cos(math.pi * done)) / 2
