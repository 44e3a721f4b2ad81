"""Nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from upheld.catalog import METHODS

HEAVY = {
    "numpy", "scipy", "pandas", "matplotlib", "sklearn", "torch", "ray", "numba", "gymnasium", "gglasso", "mabwiser", "pyarrow",
    "anndata", "jinja2", "statsmodels",
}  # fmt: skip


def loaded(code: str, *arguments: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after `code`."""
    tell = "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + tell, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("code", ["import upheld", "import upheld.catalog; upheld.catalog.methods()"])
def test_upheld_and_its_catalog_import_the_standard_library_alone(code):
    strangers = loaded(code) - set(sys.stdlib_module_names) - loaded("")
    assert strangers == {"upheld"}


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["--version"], ["--json"], ["run", "--help"], ["check", "--help"]]
)
def test_the_command_imports_nothing_heavy_to_say_what_there_is(arguments):
    code = (
        "import sys\nfrom upheld.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    found = loaded(code, *arguments)
    assert "typer" in found
    assert not found & HEAVY


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_a_methods_command_can_be_described_without_what_its_extra_brings(method):
    """`upheld run hubs --help` where nothing but the core is installed; its package may need NumPy and the like."""
    found = loaded(f"import upheld.{method}.command")
    assert not found & {"torch", "ray", "numba", "gymnasium", "gglasso", "mabwiser", "anndata", "matplotlib"}
