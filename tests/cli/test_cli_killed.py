"""A run that is killed, several times and at random points, goes on with --resume to the bits of one that was not."""

import random
import signal
import subprocess
import sys
import time

from command_line import SMALL, length_table, run

SECONDS_TO_KILL = 120.0
KILL_POINTS = 20  # a run is killed after at most so many of its checkpoints, of the 160 that it takes


def test_killed_again_and_again_it_ends_with_the_same_weights(tmp_path):
    table = length_table(tmp_path / "lengths.csv")
    common = ("train", table, "--target-column", "length", *SMALL, "--epochs", 80, "--ensemble", 2, "--quiet")
    assert run(*common, "-o", tmp_path / "straight").code == 0
    killed = (*common, "-o", tmp_path / "killed", "--resume")
    chance = random.Random(0)  # noqa: S311 (no secret)
    for _ in range(3):
        kill_at_work(killed, tmp_path / "killed.partial", chance)
        assert not (tmp_path / "killed").exists()
    done = run(*killed)
    assert (done.code, done.err) == (0, "")
    for name in ("weights-0.safetensors", "weights-1.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "lengths.csv", "straight"]


def kill_at_work(arguments, unfinished, chance):
    """Start the command, let it write a random number of checkpoints, and kill it a random moment later."""
    process = subprocess.Popen([sys.executable, "-m", "graphattn", *map(str, arguments)])
    wanted, seen, before = chance.randint(1, KILL_POINTS), 0, checkpoints(unfinished)
    until = time.monotonic() + SECONDS_TO_KILL
    while seen < wanted and process.poll() is None and time.monotonic() < until:
        now = checkpoints(unfinished)
        seen, before = seen + (now != before), now
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.02))  # somewhere within the next epoch, or while its checkpoint is written
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the run ended by itself"
    assert seen == wanted, f"only {seen} of {wanted} checkpoints within {SECONDS_TO_KILL} s"


def checkpoints(unfinished):
    """What checkpoint files there are, and which writing of each."""
    return {path.name: path.stat().st_mtime_ns for path in unfinished.glob("checkpoint-?.safetensors")}
