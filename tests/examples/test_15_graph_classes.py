"""Ours and PyG's GATv2 on one fold of MUTAG and ENZYMES, a few epochs; all folds are the example's full run."""

from example_modules import is_picture, load
from shared_data import shared_file


def test_both_learn_on_the_same_folds(tmp_path):
    example = load("15_graph_classes")
    zips = {name: shared_file(f"graphs/tu/{name}.zip") for name in ("ENZYMES", "MUTAG")}
    folds = shared_file("graphs/tu/ENZYMES_splits.json.gz")
    accuracies = example.main(tmp_path, zips["ENZYMES"], folds, zips["MUTAG"], quick=True)
    for contestant in ("graphattn", "PyG's GATv2"):
        assert accuracies["MUTAG"][contestant][0] > 0.7  # of this fold the larger class has 68 %
        assert accuracies["ENZYMES"][contestant][0] > 0.2  # six classes of equal size
    assert set(accuracies["ENZYMES"]) == {"graphattn", "PyG's GATv2"}
    assert is_picture(tmp_path / "15_graph_classes.png")


def test_folds_are_ten_and_disjoint():
    example = load("15_graph_classes")
    graphs = example.read_graphs(shared_file("graphs/tu/MUTAG.zip"))
    assert (len(graphs), sum(graph.num_nodes for graph in graphs)) == (188, 3371)
    assert sum(graph.num_edges for graph in graphs) == 7442
    for folds, count in (
        (example.stratified(graphs), 188),
        (example.published(shared_file("graphs/tu/ENZYMES_splits.json.gz")), 600),
    ):
        assert len(folds) == 10
        assert sorted(row for fold in folds for row in fold["test"]) == list(range(count))
        assert all(len({*fold["train"], *fold["validation"], *fold["test"]}) == count for fold in folds)
