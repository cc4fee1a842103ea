"""A convolution as attention: equal to Conv2d, reached by a steeper score, and ahead with few images."""

from example_modules import is_picture, load


def test_the_layers_are_equal_and_the_cnn_needs_the_fewest_images(tmp_path, capsys):
    results = load("10_convolution").main(tmp_path, quick=True)
    assert set(results.differences) == {(size, how) for size in (3, 5) for how in ("softmax", "relu")}
    assert max(results.differences.values()) < 1e-5
    approached = list(results.from_steep.values())
    assert approached == sorted(approached, reverse=True)
    assert approached[0] > 0.1  # a flat score is no convolution
    assert approached[-1] < 1e-5
    assert max(results.parameters.values()) < 1.02 * min(results.parameters.values())
    of_50 = {name: float(by_count[50].mean()) for name, by_count in results.accuracy.items()}
    assert min(of_50.values()) > 0.4  # of 10 digits, after 60 steps
    assert max(of_50, key=lambda name: of_50[name]) == "CNN"
    assert "with 50 images" in capsys.readouterr().out
    assert is_picture(tmp_path / "10_convolution.png")
