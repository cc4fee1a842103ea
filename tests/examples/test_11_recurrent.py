"""Reach by gradients: a GRU and causal attention see the left, full attention all, a window its neighbors."""

import torch
from example_modules import is_picture, load


def test_who_reaches_whom_and_who_waits(tmp_path, capsys):
    results = load("11_recurrent").main(tmp_path, quick=True)
    everywhere = torch.ones(24, 24, dtype=torch.bool)
    wanted = {
        "GRU": everywhere.tril(),
        "full attention": everywhere,
        "causal attention": everywhere.tril(),
        "window attention": everywhere.tril(3) & everywhere.triu(-3),
    }
    assert results.gradients.keys() == wanted.keys()
    for name, reached in wanted.items():
        assert torch.equal(results.gradients[name] > 0, reached), name
    gru = results.gradients["GRU"]
    assert gru[23, 0] < 0.01 * gru[0, 0]  # what passes through every step fades
    for of_pass in results.seconds.values():
        assert of_pass.keys() == wanted.keys()
        assert all(set(of_layer) == {128, 256} and min(of_layer.values()) > 0 for of_layer in of_pass.values())
    both = results.seconds["forward and backward"]
    assert both["window attention"][256] < both["GRU"][256]
    assert "steps wait for each other" in capsys.readouterr().out
    assert is_picture(tmp_path / "11_recurrent.png")
