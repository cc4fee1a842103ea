"""Digits: every way to look at pixels learns to read them, at the cost that its adjacency says."""

from example_modules import is_picture, load


def test_attention_and_a_cnn_learn_to_read(tmp_path, capsys):
    results = load("09_digits").main(tmp_path, quick=True)
    pairs = {name: each.pairs for name, each in results.items()}
    assert pairs == {"full attention": 64**2, "3 x 3 attention": 22**2, "5 x 5 attention": 34**2, "CNN": None}
    assert results["full attention"].accuracy > 0.3  # of 10 digits, after 3 epochs
    assert results["3 x 3 attention"].accuracy > 0.6
    assert results["5 x 5 attention"].accuracy > 0.45
    assert results["CNN"].accuracy > 0.9
    sizes = [each.parameters for each in results.values()]
    assert max(sizes) < 1.02 * min(sizes)
    assert "held-out images right" in capsys.readouterr().out
    assert is_picture(tmp_path / "09_digits.png")


def test_training_and_held_out_images_are_different_ones_in_equal_shares_of_digits():
    digits = load("09_digits").digits
    training, held_out = digits.split(1400, seed=0)
    assert (len(training), len(held_out)) == (1400, 397)
    assert not {tuple(image) for image in training.images.tolist()} & {
        tuple(image) for image in held_out.images.tolist()
    }
    for part in (training, held_out):
        shares = part.labels.bincount(minlength=10) / len(part)
        assert shares.min() > 0.09
        assert shares.max() < 0.11
