"""GAT of our layers on Cora; the full run, ten seeds of two graphs, is the example's own."""

from example_modules import is_picture, load
from shared_data import shared_file


def test_most_papers_find_their_field(tmp_path):
    folder = shared_file("graphs/planetoid/ind.cora.graph").parent
    accuracies = load("14_citations").main(tmp_path, folder, quick=True)
    assert accuracies["cora"][0] > 0.75  # of seven fields; sixty epochs of one seed
    assert is_picture(tmp_path / "14_citations.png")
