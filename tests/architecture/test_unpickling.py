"""Nothing that a user names is unpickled, evaluated or run, read from the source's syntax.

A pickle, a YAML object or a text handed to `eval` runs what its author wrote. What must load one says here why it may.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "upheld"
NEVER = {
    "pickle.load", "pickle.loads", "pickle.Unpickler", "_pickle.loads", "cPickle.loads", "cloudpickle.load", "cloudpickle.loads",
    "dill.load",
    "dill.loads", "shelve.open", "marshal.load", "marshal.loads", "joblib.load", "pandas.read_pickle", "yaml.load", "yaml.load_all",
    "yaml.unsafe_load", "yaml.full_load", "torch.package.PackageImporter", "jsonpickle.decode", "eval", "exec", "os.system", "os.popen",
    "numpy.lib.format.read_array:allow_pickle", "numpy.load:allow_pickle", "torch.load:weights_only", "subprocess:shell",
}  # fmt: skip
ALLOWED = {
    ("compute/worker.py", "pickle.loads"): "a job of this program, from the process that started the worker",
    ("compute/job.py", "pickle.loads"): "an outcome, from a worker that this program started",
    ("flows/folders.py", "pickle.Unpickler"): "the base of a reader that refuses all but arrays",
    ("sandbox/program.py", "exec"): "a model's program, in the confined process",
}


def modules(tree: ast.Module) -> dict[str, str]:
    """What a name in this file stands for: ``np`` -> ``numpy``, ``load`` -> ``pickle.load``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                names[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """``np.load`` -> ``numpy.load``; empty for what is no plain name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        inside = full_name(node.value, names)
        return f"{inside}.{node.attr}" if inside else ""
    return ""


def is_constant(call: ast.Call, keyword: str, value: bool) -> bool:
    return any(
        one.arg == keyword and isinstance(one.value, ast.Constant) and one.value.value is value for one in call.keywords
    )


def dangers(text: str) -> Iterator[tuple[str, int]]:
    """(what, line) of every call, base class or mention that loads or runs what its input says."""
    tree = ast.parse(text)
    names = modules(tree)
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        name, call = full_name(node, names), called.get(id(node))
        if name in NEVER:
            yield name, node.lineno
        elif call is not None and name == "torch.load" and not is_constant(call, "weights_only", True):
            yield "torch.load:weights_only", node.lineno
        elif call is not None and name in ("numpy.load", "numpy.lib.format.read_array"):
            if any(one.arg == "allow_pickle" and not is_constant(call, "allow_pickle", False) for one in call.keywords):
                yield f"{name}:allow_pickle", node.lineno
        elif call is not None and name.startswith("subprocess.") and any(one.arg == "shell" for one in call.keywords):
            yield "subprocess:shell", node.lineno


FILES = sorted(SOURCE.rglob("*.py"))


def test_no_file_of_a_user_is_unpickled_or_run():
    found = {}
    for path in FILES:
        place = path.relative_to(SOURCE).as_posix()
        found |= {(place, what): line for what, line in dangers(path.read_text(encoding="utf-8"))}
    strangers = {f"{place}:{line}: {what}" for (place, what), line in found.items() if (place, what) not in ALLOWED}
    assert not strangers
    assert set(ALLOWED) <= set(found), "an exception that nobody needs any more"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import pickle\npickle.load(file)", "pickle.load"),
        ("from pickle import loads as read\nread(data)", "pickle.loads"),
        ("import pandas as pd\npd.read_pickle(path)", "pandas.read_pickle"),
        ("import torch\ntorch.load(path)", "torch.load:weights_only"),
        ("import torch\ntorch.load(path, weights_only=False)", "torch.load:weights_only"),
        ("import torch\ntorch.load(path, weights_only=flag)", "torch.load:weights_only"),
        ("import numpy as np\nnp.load(path, allow_pickle=True)", "numpy.load:allow_pickle"),
        ("import yaml\nyaml.load(text, Loader=yaml.Loader)", "yaml.load"),
        ("import joblib\nread = joblib.load", "joblib.load"),
        ("eval(text)", "eval"),
        ("import subprocess\nsubprocess.run(text, shell=True)", "subprocess:shell"),
        ("import pickle\nclass Mine(pickle.Unpickler): pass", "pickle.Unpickler"),
    ],
)
def test_it_is_seen_however_it_is_spelled(text, what):
    assert [found for found, _ in dangers(text)] == [what]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.load(path, weights_only=True)",
        "import numpy as np\nnp.load(path)\nnp.load(path, allow_pickle=False)",
        "import pickle\npickle.dumps(1)",
        "network.eval()",
        "import re\nre.compile('x').exec",
    ],
)
def test_what_is_safe_is_let_be(text):
    assert list(dangers(text)) == []
