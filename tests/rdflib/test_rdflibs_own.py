"""rdflib's own tests of graphs, stores and queries, with ours as the default store.

Read from `rdflib/test` in the folder that DOTR_DATA names: `test/` of rdflib's source distribution.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("DOTR_DATA", ""), "rdflib")

GRAPHS = (
    "test_graph/test_graph.py",
    "test_graph/test_slice.py",
    "test_graph/test_graph_items.py",
    "test_graph/test_graph_generators.py",
    "test_graph/test_graph_cbd.py",
    "test_graph/test_graph_operator.py",
    "test_graph/test_container.py",
    "test_graph/test_batch_add.py",
    "test_store/test_store.py",
    "test_store/test_store_triple_store.py",
    "test_store/test_namespace_binding.py",
)
QUERIES = (
    "test_path.py",
    "test_sparql/test_agg_distinct.py",
    "test_sparql/test_agg_undef.py",
    "test_sparql/test_construct_bindings.py",
    "test_sparql/test_evaluate_bind.py",
    "test_sparql/test_expressions.py",
    "test_sparql/test_functions.py",
    "test_sparql/test_nested_filters.py",
    "test_sparql/test_operators.py",
    "test_sparql/test_optional.py",
    "test_sparql/test_prepare.py",
    "test_sparql/test_result.py",
    "test_sparql/test_sparql.py",
    "test_sparql/test_subselect.py",
)

EXCLUDED = {
    "a relative IRI is no term of RDF": (
        "test_connected",
        "test_parse_berners_lee_card_into_graph",
        "test_exit_submits_partial_batch",
        "test_add_more_than_batch_size",
        "test_add_quad_for_non_conjunctive_pass_on_context_matches",
        "test_no_addN_on_exception",
    ),
    "asks a server": ("test_guess_format_for_parse_http",),
    "has named graphs, or N3 with formulas": (
        "test_prepare_query",
        "test_graph_prefix",
        "test_named_filter_graph_query",
    ),
    "replaces parts of rdflib's evaluator, which is not asked": (
        "test_custom_eval",
        "test_operator_exception",
    ),
    "the SUM of something unbound is an error of SPARQL, and no zero": ("SUM-0-42",),
}


@pytest.mark.skipif(not (FOLDER / "test").is_dir(), reason="DOTR_DATA has no rdflib/test")
@pytest.mark.parametrize(("files", "least"), [(GRAPHS, 70), (QUERIES, 200)], ids=["graphs", "queries"])
def test_rdflibs_own_tests_hold(files: tuple[str, ...], least: int) -> None:
    missing = " or ".join(name for names in EXCLUDED.values() for name in names)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-o",
        "addopts=",
        "-o",
        "filterwarnings=",
        "-W",
        "ignore",
    ]
    command += ["-p", "no:cacheprovider", "-p", "tests.rdflib.as_default", "-k", f"not ({missing})"]
    found = subprocess.run(
        [*command, *(f"test/{file}" for file in files)],
        cwd=FOLDER,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-1000:]
    passed = re.search(r"(\d+) passed", found.stdout)
    assert passed is not None, found.stdout[-300:]
    assert int(passed[1]) >= least
