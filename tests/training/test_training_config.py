"""TrainingConfig: every setting out of its range is refused by name and value."""

import re
import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

from graphattn.errors import SettingError
from graphattn.training.config import TrainingConfig


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"batch_size": -3}, "batch_size must be at least 1, got -3"),
        ({"patience": 0}, "patience must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 2**32}, "seed must be between 0 and 4294967295, got 4294967296"),
        ({"seed": 10**30}, "seed must be between 0 and 4294967295, got 1000000000000000000000000000000"),
        ({"batch_size": 10**20}, "batch_size must be between 1 and 2147483647, got 100000000000000000000"),
        ({"epochs": 2**31}, "epochs must be between 1 and 2147483647, got 2147483648"),
        ({"epochs": 16.0}, "epochs must be a whole number, got 16.0"),
        ({"epochs": 2.5}, "epochs must be a whole number, got 2.5"),
        ({"batch_size": "32"}, "batch_size must be a whole number, got '32'"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"learning_rate": 0}, "learning_rate must be above 0, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be at least 0 and finite, got -1.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be at least 0 and finite, got nan"),
        ({"weight_decay": float("inf")}, "weight_decay must be at least 0 and finite, got inf"),
        ({"warmup_epochs": 10**400}, "warmup_epochs must be at least 0 and finite, got inf"),
        ({"clip_norm": "1"}, "clip_norm must be a number, got '1'"),
        ({"warmup_epochs": True}, "warmup_epochs must be a number, got True"),
        ({"loss": "rmse"}, "loss must be one of auto, mse, huber, mae, got 'rmse'"),
        ({"loss": np.array(["mse", "mae"])}, "loss must be one of auto, mse, huber, mae, got array(['mse', 'mae']"),
        ({"accelerator": "tpu"}, "accelerator must be one of auto, cpu, cuda, got 'tpu'"),
        ({"precision": "16-mixed"}, "precision must be one of 32-true, bf16-mixed, got '16-mixed'"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name_and_value(setting, message):
    with pytest.raises(SettingError, match=f"^{re.escape(message)}"):
        TrainingConfig(**setting)


def test_numbers_of_numpy_are_kept_as_plain_ones():
    config = TrainingConfig(epochs=np.int64(3), learning_rate=np.float32(0.5), warmup_epochs=1)
    assert (type(config.epochs), type(config.learning_rate), type(config.warmup_epochs)) == (int, float, float)


def test_every_field_says_beside_its_type_what_it_is():
    """The command line takes its help from there."""
    hints = get_type_hints(TrainingConfig, include_extras=True)
    for field in fields(TrainingConfig):
        (text,) = hints[field.name].__metadata__
        assert text, field.name


def test_the_command_line_can_read_the_settings_without_torch():
    program = "import sys, graphattn.training.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
