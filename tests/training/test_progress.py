"""What a run shows: a bar on a terminal, lines in a log, nothing when quiet."""

import io

import pytest

from graphattn.training.history import EpochRecord
from graphattn.training.progress import Bar, Lines, Silent, choose_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show(progress, epochs_done=0):
    records = [EpochRecord(1, 0.5, 0.25, 1e-3, 1.26), EpochRecord(2, 0.4, 0.5, 9.8e-4, 2.0)][epochs_done:]
    progress.start(epochs=2, steps_per_epoch=3, epochs_done=epochs_done)
    for record in records:
        for _ in range(3):
            progress.step()
        progress.epoch(record, EpochRecord(1, 0.5, 0.25, 1e-3, 1.26))
    progress.stop()


@pytest.mark.parametrize(
    ("quiet", "stream", "kind"),
    [
        (True, Terminal(), Silent),
        (True, io.StringIO(), Silent),
        (False, Terminal(), Bar),
        (False, io.StringIO(), Lines),
    ],
)
def test_the_stream_decides(quiet, stream, kind):
    assert type(choose_progress(quiet=quiet, stream=stream)) is kind


def test_a_log_has_one_plain_line_per_epoch():
    log = io.StringIO()
    show(choose_progress(quiet=False, stream=log))
    assert log.getvalue().splitlines() == [
        "epoch 1/2  train 0.5  valid 0.25  best 0.25 (epoch 1)  lr 1.0e-03  1.3 s",
        "epoch 2/2  train 0.4  valid 0.5  best 0.25 (epoch 1)  lr 9.8e-04  2.0 s",
    ]


def test_a_log_says_where_a_run_was_taken_up_and_whose_it_is():
    log = io.StringIO()
    show(choose_progress(quiet=False, stream=log, label="network 2 of 5"), epochs_done=1)
    assert log.getvalue().splitlines() == [
        "network 2 of 5: resumed after epoch 1 of 2 (3 steps each)",
        "network 2 of 5: epoch 2/2  train 0.4  valid 0.5  best 0.25 (epoch 1)  lr 9.8e-04  2.0 s",
    ]


@pytest.mark.parametrize("epochs_done", [0, 1])
def test_a_terminal_has_a_bar_that_ends_full(epochs_done):
    terminal = Terminal()
    progress = choose_progress(quiet=False, stream=terminal, label="network [2] of 5")
    show(progress, epochs_done)
    assert progress._bar.finished
    text = terminal.getvalue()
    assert "network [2] of 5: epoch 2/2" in text
    assert "best 0.25 (epoch 1)" in text
    assert text.endswith("\x1b[?25h")  # the cursor is back


def test_silence(capsys):
    show(choose_progress(quiet=True))
    assert capsys.readouterr() == ("", "")


def test_the_standard_error_is_the_default(capsys):
    show(choose_progress(quiet=False))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("epoch") == 4
