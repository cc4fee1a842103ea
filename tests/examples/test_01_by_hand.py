"""The matrices worked by hand: exact to the four digits that were written down."""

import torch
from example_modules import is_picture, load

from graphattn.attention.attend import BACKENDS

SCORES = [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
OUTPUTS = [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
OUTPUTS_OF_SET_WEIGHTS = [[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]]


def same(found, wanted, within):
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float32), rtol=0, atol=within)


def test_every_step_and_every_backend_give_the_numbers(tmp_path, capsys):
    found = load("01_by_hand").main(tmp_path, quick=True)
    same(found.scores, SCORES, within=0)
    same(found.outputs, OUTPUTS, within=5e-5)
    same(found.outputs_at_once, OUTPUTS, within=5e-5)
    same(found.outputs_of_set_weights, OUTPUTS_OF_SET_WEIGHTS, within=1e-6)
    everywhere = {backend.name for backend in BACKENDS}  # Triton's interpreter stands in for a GPU in the tests
    assert set(found.layer) == set(found.set_weights_by_relu) == set(found.set_weights_by_softmax) == everywhere
    for by_layer in found.layer.values():
        same(by_layer, OUTPUTS, within=5e-5)
    for out in (*found.set_weights_by_relu.values(), *found.set_weights_by_softmax.values()):
        same(out, OUTPUTS_OF_SET_WEIGHTS, within=1e-5)

    printed = capsys.readouterr().out
    rows = ("   1.9366     6.6831     1.5951", "   2.0000     7.9640     0.0540", "   1.9997     7.7599     0.3584")
    assert "\n".join(rows) in printed
    assert "[0.9366 3.7465 0.0000]" in printed  # what the second vector gives to the first
    assert is_picture(tmp_path / "01_by_hand.png")
