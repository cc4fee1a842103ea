"""Tables as people have them: marks, blanks, delimiters, quotes, encodings, and where each fault is."""

import csv
import gzip
import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import shared_file

from graphattn.data.table import parse_table, read_table
from graphattn.errors import TableError

FILE = Path("molecules.csv")


def table_of(text, name="molecules.csv"):
    return parse_table(text if isinstance(text, bytes) else text.encode(), Path(name))


def rows_of(table):
    return table.frame.to_numpy(dtype=object).tolist()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"\xef\xbb\xbfsmiles,y\nCCO,1\n", ("smiles", "y")),  # case D1
        (b'\xef\xbb\xbf"smiles","y"\nCCO,1\n', ("smiles", "y")),
        (b"smiles, y \nCCO,1\n", ("smiles", "y")),  # case D2
        (b"smiles;y\nCCO;1\n", ("smiles", "y")),  # case D3
        (b"smiles\ty\nCCO\t1\n", ("smiles", "y")),
        (b"smiles,y\r\nCCO,1\r\n", ("smiles", "y")),
        (b"smiles,y\rCCO,1\r", ("smiles", "y")),
        (b"smiles,y\nCCO,1", ("smiles", "y")),
        (b"\xef\xbb\xbf\xef\xbb\xbfsmiles,y\nCCO,1\n", ("smiles", "y")),
        (b"smiles,y,,\nCCO,1,,\n", ("smiles", "y")),
        (b"smiles,y, \nCCO,1, \n", ("smiles", "y")),
        (b"smiles,y,,\nCCO,1\n", ("smiles", "y")),  # Excel forgets some
        (b",y\nCCO,1", ("", "y")),  # as pandas writes an index
    ],
)
def test_the_header_is_found(text, names):
    table = table_of(text)
    assert table.names == names
    assert rows_of(table) == [["CCO", "1"]]
    assert table.lines == (2,)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [";", "|", "\t", "^"])
def test_a_first_line_that_says_the_delimiter_is_believed(mark, end):
    table = table_of(end.join(["\ufeffsep=" + mark, f"smiles{mark}y, z", f"C{mark}1,5", f"CC{mark}2,5"]))
    assert (table.names, table.delimiter, table.lines) == (("smiles", "y, z"), mark, (3, 4))


def test_a_column_may_be_named_as_if_it_said_a_delimiter():
    assert table_of("sep=;,y\nC,1\n").names == ("sep=;", "y")


def test_quoted_cells_and_untouched_columns():
    """Case D5; cells stay as they came, blanks and "NA" and all."""
    table = table_of('name,smiles,y,note\n"4-methoxy-N,N-dimethyl",CCO ,1.50,NA\n" a ""b""",C, 2 ,\n')
    assert table.column("name") == ["4-methoxy-N,N-dimethyl", ' a "b"']
    assert table.column("smiles") == ["CCO ", "C"]
    assert table.column("y") == ["1.50", " 2 "]
    assert table.column("note") == ["NA", ""]
    assert table.numbers("y").tolist() == [1.5, 2]
    assert np.isnan(table.numbers("note")).all()


@pytest.mark.parametrize("cell", ["", " ", "NA", "na", "NaN", "n/a", "N/A", "None", "null", "NULL", "#N/A", "<NA>"])
def test_missing_numbers(cell):
    assert np.isnan(table_of(f"smiles,y\nC,{cell}\n").numbers("y")).all()


@pytest.mark.parametrize("cell", ["1", "-1.25", "+.5", "3.", "1e-3", "2E+2", " 7 ", "0"])
def test_numbers(cell):
    assert table_of(f"smiles,y\nC,{cell}\n").numbers("y").tolist() == [float(cell)]


@pytest.mark.parametrize(
    "cell", ["1,5", "inf", "-inf", "1e999", "> 5", "<0.1", "1_000", "\u0661", "0x10", "yes", "1 2"]
)
def test_cells_that_are_no_numbers(cell):
    table = table_of(f'smiles;y;note\nC;1;a\n;;\nCC;"{cell}";b\nCCC;x;c\nCCCC;y;d\n')
    words = (
        f"molecules.csv, row 3 (line 4), column 'y': {cell!r} is not a finite number (2 more such cells below). "
        "Write one such as -1.25, with a point, or leave the cell empty for a missing value."
    )
    with pytest.raises(TableError, match=re.escape(words)):
        table.numbers("y")


@pytest.mark.parametrize(
    ("name", "text", "delimiter", "header"),
    [
        ("a.tsv", "smiles\ty, z\nC\t1\n", "\t", ("smiles", "y, z")),
        ("a.tab", "smiles\ty\nC\t1\n", "\t", ("smiles", "y")),
        ("a.tsv.gz", "smiles\ty\nC\t1\n", "\t", ("smiles", "y")),
        ("a.tsv", "smiles,y\nC,1\n", ",", ("smiles", "y")),
        ("a.tsv", "smiles\nC\n", "\t", ("smiles",)),
        ("a.csv", "smiles\nC,C\n", ",", None),
        ("a.csv", "smiles;y, in mol/L\nC;1.5\n", ";", ("smiles", "y, in mol/L")),
        ("a.csv", "smiles,y; 25 C; pH 7\nC,1\n", ",", ("smiles", "y; 25 C; pH 7")),
        ("a.csv", '"smiles","y; 25 C; pH 7"\nC,1\n', ",", ("smiles", "y; 25 C; pH 7")),
        ("a.csv", "smiles;y\nC;1,5\nCC;2,5\n", ";", ("smiles", "y")),
        ("a.txt", "smiles\nC\n", ",", ("smiles",)),
        ("a.csv", "smiles\nC;C\n", ",", ("smiles",)),
        ("a.csv", "smiles\nC|C;C\nC|C;C\n", ",", ("smiles",)),
        ("a.csv", "smiles|y, in mol/L\nC|1.5\n", "|", ("smiles", "y, in mol/L")),
        ("a.csv", "smiles|y\nC|1,5\nCC|2,5\n", "|", ("smiles", "y")),
        ("a.csv", "smiles,kind|of\nC,a|b\nCC,c|d\n", ",", ("smiles", "kind|of")),
        ("a.csv", "kind|of;smiles\nCC\n", ",", ("kind|of;smiles",)),
        ("a.tsv", "smiles|y\nC|1\n", "|", ("smiles", "y")),
        ("a.TSV.GZ", "smiles\ty, z\nC\t1,5\n", "\t", ("smiles", "y, z")),
        ("a.tsv.csv", "smiles,y\tz\nC,1\t5\n", ",", ("smiles", "y\tz")),
        ("a.tsv.CSV.gz", "smiles,y\tz\nC,1\t5\n", ",", ("smiles", "y\tz")),
    ],
)
def test_the_delimiter_is_found(name, text, delimiter, header):
    if header is None:
        with pytest.raises(TableError, match="row 1 "):
            table_of(text, name)
        return
    table = table_of(text, name)
    assert table.delimiter == delimiter
    assert table.names == header
    assert len(table) == text.count("\n") - 1


@pytest.mark.parametrize(
    ("text", "delimiter", "cells"),
    [("smiles;y, z\nC;1\nCC;2;3\n", ";", 3), ("smiles|y\nC|1\nCC|2|3\n", "|", 3), ("smiles;y\nC;1;2\n", ";", 3)],
)
def test_a_row_that_does_not_fit_is_told_with_the_delimiter_that_most_rows_fit(text, delimiter, cells):
    with pytest.raises(
        TableError, match=re.escape(f"has {cells} cells but the header names 2 columns (delimiter {delimiter!r})")
    ):
        table_of(text)


def test_a_missing_column_names_the_delimiter_that_may_have_been_meant():
    """Decimal commas make both delimiters fit; the comma is taken."""
    table = table_of("smiles;logS, mol/L\nC;1,5\nCC;2,5\n")
    words = (
        "has no column 'solubility'. Its columns are 'smiles;logS', 'mol/L'. They were told apart by ','; if the "
        "delimiter is ';', put every name and cell that holds ',' in double quotes."
    )
    with pytest.raises(TableError, match=re.escape(words)):
        table.column("solubility")


def test_a_cell_may_be_of_any_length_and_the_limit_of_the_csv_module_stays():
    before = csv.field_size_limit()
    sequence = "C" * 300_000
    assert table_of(f'smiles,note\n{sequence},"{sequence}"\nC,b\n').column("note") == [sequence, "b"]
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(table_of, [f"smiles,y\n{sequence},1\n"] * 8))
    assert [table.column("smiles") for table in tables] == [[sequence]] * 8
    assert csv.field_size_limit() == before


def test_rows_and_lines_are_counted_apart():
    """A quoted line break and blank lines shift the lines; blank lines are no rows."""
    table = table_of('smiles,y\n\n"C\nC",1\n  \nCC,2\n\n')
    assert rows_of(table) == [["C\nC", "1"], ["CC", "2"]]
    assert table.lines == (3, 6)
    assert table.where(1) == "molecules.csv, row 2 (line 6)"


def test_an_empty_cell_is_a_row():
    assert table_of('smiles\nC\n""\n \nCC\n').column("smiles") == ["C", "", " ", "CC"]


def test_names_are_asked_for_with_or_without_blanks():
    table = table_of("smiles, y \nC,1\n")
    assert table.numbers(" y ").tolist() == [1]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("Smiles", "has no column 'Smiles'; did you mean 'smiles'? Its columns are 'smiles', 'logS', 'note'."),
        ("log_s", "has no column 'log_s'; did you mean 'logS'? Its columns are 'smiles', 'logS', 'note'."),
        ("target", "has no column 'target'. Its columns are 'smiles', 'logS', 'note'."),
    ],
)
def test_a_column_that_is_not_there(asked, words):
    table = table_of("smiles,logS,note\nC,1,a\n")
    for read in (table.column, table.numbers):
        with pytest.raises(TableError, match=re.escape(f"molecules.csv {words}")):
            read(asked)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "molecules.csv is empty; a table begins with a line that names its columns."),
        (b"\xef\xbb\xbf \n\n", "molecules.csv is empty"),
        (b"smiles,y\n", "molecules.csv has a header, 'smiles', 'y', but no rows below it."),
        (b"smiles,y\n\n  \n", "molecules.csv has a header, 'smiles', 'y', but no rows below it."),
        (
            b"smiles,y\nC,1\nCC,2,3\n",
            "molecules.csv, row 2 (line 3) has 3 cells but the header names 2 columns (delimiter ','); put a cell that",
        ),
        (b"smiles,y\nC,1\n\nCC\n", "molecules.csv, row 2 (line 4) has 1 cells but the header names 2 columns"),
        (
            b"smiles,y, smiles\nC,1,C\n",
            "molecules.csv: columns 1 and 3 are both named 'smiles'; give each its own",
        ),
        (b",\n,\n", "molecules.csv: columns 1 and 2 are both named ''; give each its own name."),
        (b"smiles,y,,\nC,1,,\nCC,,\nC\n", "molecules.csv, row 3 (line 4) has 1 cells but the header names 2 columns"),
        (b"sep=;\n", "molecules.csv is empty; a table begins with a line that names its columns."),
        (b"sep=;\nsmiles;y\nC;1\nCC\n", "molecules.csv, row 2 (line 4) has 1 cells but the header names 2 columns"),
        (b"smiles,,\nC,1,C\n", "molecules.csv: columns 2 and 3 are both named ''; give each its own name."),
        (
            b'smiles,y\nC,1\n"CC,2\nCCC,3\n',
            "molecules.csv: the row that begins on line 3 cannot be read: unexpected end of data. Look for a double",
        ),
        (b'smiles,y\nC,1\n"C"C,2\n', "the row that begins on line 3 cannot be read: ',' expected after '\"'."),
        (
            b"smiles,name\nC,a\nCC,caf\xe9\n",
            "molecules.csv, line 3: byte 0xe9 at offset 22 is not UTF-8; save the file with the encoding UTF-8.",
        ),
        (b"\xef\xbb\xbfsmiles,name\nC,caf\xe9\n", "molecules.csv, line 2: byte 0xe9 at offset 20 is not UTF-8"),
        (
            "smiles,y\nC,1\n".encode("utf-16"),
            "molecules.csv is not a CSV or TSV file but UTF-16 text; save it as",
        ),
        ("smiles,y\nC,1\n".encode("utf-16-le"), "molecules.csv holds a zero byte at offset 1, so it is no UTF-8 text"),
        (
            b"PK\x03\x04rest",
            "molecules.csv is not a CSV or TSV file but an Excel workbook or a zip archive; save it as CSV",
        ),
        (gzip.compress(b"smiles,y\nC,1\n" * 99)[:-20], "molecules.csv is compressed with gzip but damaged: "),
        (b"\x1f\x8b garbage", "molecules.csv is compressed with gzip but damaged: "),
        (gzip.compress(b"smiles,y\n"), "molecules.csv has a header, 'smiles', 'y', but no rows below it."),
    ],
)
def test_content_that_is_no_table(content, words):
    with pytest.raises(TableError, match=re.escape(words)):
        parse_table(content, FILE)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(TableError, match=re.escape(f"none.csv does not exist; the folder looked in is {tmp_path}.")):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match=re.escape(f"{tmp_path} is a folder; name a CSV or TSV file in it.")):
        read_table(str(tmp_path))
    with pytest.raises(TableError, match="cannot be read: File name too long"):
        read_table(tmp_path / ("x" * 5000))


def test_gzip_is_told_by_content_not_by_name(tmp_path):
    content = b"smiles,y\nCCO,1\n"
    packed = gzip.compress(content)
    for name, written in {"a.csv": packed, "b.csv.gz": content, "c.csv.gz": packed}.items():
        (tmp_path / name).write_bytes(written)
        assert rows_of(read_table(tmp_path / name)) == [["CCO", "1"]]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(deadline=None, max_examples=200)
@given(
    rows=st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_the_csv_module_writes_comes_back(rows, delimiter, end, quoting):
    """Any text survives; a lone blank cell among several columns cannot arise, since every row has all its cells."""
    if any("\r" in cell for cells in rows for cell in cells):
        quoting = csv.QUOTE_ALL  # the csv module forgets to quote a lone carriage return
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow([f"column {place}" for place in range(len(rows[0]))])
    writer.writerows(rows)
    name = "a.tsv" if delimiter == "\t" else "a.csv"
    if len(rows[0]) == 1 and delimiter in ";|":
        return  # without a second column nothing tells the delimiter
    assert rows_of(table_of(text.getvalue(), name)) == rows


@pytest.mark.parametrize(
    "name",
    [
        "molnet/delaney-processed.csv",
        "molnet/SAMPL.csv",
        "molnet/clintox.csv.gz",
        "admet/aqsoldb_curated.csv.gz",
        "activity/moleculeace_CHEMBL1871_Ki.csv.gz",
    ],
)
def test_real_files_read_as_pandas_reads_them(name):
    path = shared_file(name)
    table = read_table(path)
    wanted = pd.read_csv(path, dtype=object, keep_default_na=False, na_filter=False)
    assert list(table.names) == list(wanted.columns)
    assert rows_of(table) == wanted.to_numpy(dtype=object).tolist()


def test_real_numbers_read_as_pandas_reads_them():
    path = shared_file("molnet/tox21.csv.gz")
    table, wanted = read_table(path), pd.read_csv(path)
    for name in wanted.columns.drop("smiles"):
        np.testing.assert_array_equal(table.numbers(name), wanted[name].to_numpy())
