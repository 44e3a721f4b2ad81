"""A user's model files: TorchScript, weights with a loader, diffusers folders."""

from __future__ import annotations

import importlib
import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from upheld.flows.pipelines import from_diffusers
from upheld.flows.velocity import FlowField

DIFFUSERS = "diffusers:"


class Sendable:
    """A module that can be sent to another process: a TorchScript one goes as the bytes of its file.

    Examples
    --------
    >>> import pickle
    >>> net = Sendable(torch.jit.script(nn.Linear(2, 1)))
    >>> x = torch.ones(3, 2)
    >>> torch.equal(pickle.loads(pickle.dumps(net))(x), net(x))
    True
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.module(*given)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        if not isinstance(self.module, torch.jit.ScriptModule):
            return Sendable, (self.module,)
        content = io.BytesIO()
        torch.jit.save(self.module, content)
        return _received, (content.getvalue(),)


def _received(content: bytes) -> Sendable:
    return Sendable(_script(io.BytesIO(content)))


def load_flow(
    name: str, loader: str | None, prediction: str, coupling: str, prompt: str, shape: tuple[int, ...]
) -> FlowField:
    """The flow that ``--velocity`` names.

    Raises
    ------
    ValueError
        If it cannot be loaded; the message says what is wanted instead.
    """
    if name.startswith(DIFFUSERS):
        return _pipeline(Path(name.removeprefix(DIFFUSERS)), prompt, shape, coupling)
    module = load_module(Path(name), "--velocity", "--loader", loader)
    return FlowField(_timed(module, shape), parametrization=prediction, coupling=coupling)


class BatchTime:
    """A network that wants a time for every example, called with one for all."""

    def __init__(self, module: Sendable) -> None:
        self.module = module

    def __call__(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return self.module(x, t.expand(len(x)))


def _timed(module: Sendable, shape: tuple[int, ...]) -> Sendable | BatchTime:
    """The network as f(x, t), t a scalar; where it does not take that but t (B,), with t repeated."""
    x, t = torch.zeros(3, *shape), torch.tensor(0.5)
    batched = BatchTime(module)
    for way in (module, batched):
        try:
            with torch.no_grad():
                fits = way(x, t).shape == x.shape
        except Exception:  # a user's network fails in ways of its own; the run then says so with its first call
            continue
        if fits:
            return way
    return module


def load_module(path: Path, option: str, loader_option: str, loader: str | None = None) -> Sendable:
    """A module to call: a TorchScript file, or weights put into what the loader makes."""
    if not path.is_file():
        raise ValueError(f"{option} {path} is no file; name one that torch.jit.save wrote")
    if loader is not None:
        module = _made(loader, loader_option)
        try:
            module.load_state_dict(_weights(path))
        except RuntimeError as error:
            raise ValueError(
                f"the weights of {option} {path} do not fit what {loader_option} {loader} makes: {_first_line(error)}"
            ) from error
        return Sendable(module.eval().requires_grad_(False))
    if not _is_torchscript(path):
        raise ValueError(
            f"{option} {path} is no TorchScript file; save it with torch.jit.trace(net, example).save(...), or give its weights with "
            f"{loader_option} module:callable"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return Sendable(_script(str(path)))
        except RuntimeError as error:
            raise ValueError(f"{option} {path} cannot be loaded: {_first_line(error)}; save it again") from error


def _script(source: Any) -> nn.Module:
    """A TorchScript module for use, from a path or its bytes."""
    found: nn.Module = torch.jit.load(source, map_location="cpu")  # type: ignore[no-untyped-call]
    for parameter in found.parameters():
        parameter.requires_grad_(False)
    return found.eval()


def _is_torchscript(path: Path) -> bool:
    """A zip archive with code in it; weights alone have none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):  # none, or a damaged one
        return False


def _weights(path: Path) -> dict[str, torch.Tensor]:
    try:
        state = _read_weights(path)
    except Exception as error:  # formats fail in as many ways as there are
        raise ValueError(
            f"{path} holds no weights that can be loaded safely ({_first_line(error)}); save net.state_dict()"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise ValueError(f"{path} holds a {type(state).__name__}, not a state_dict of tensors; save net.state_dict()")
    return state


def _read_weights(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if path.suffix == ".npz":
        import numpy as np

        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.as_tensor(arrays[name]) for name in arrays.files}
    return torch.load(path, weights_only=True, map_location="cpu")


def _made(loader: str, option: str) -> nn.Module:
    """What ``module:callable`` makes."""
    module, _, attribute = loader.partition(":")
    if not attribute:
        raise ValueError(f"{option} {loader!r} names no callable; write module:callable")
    try:
        make: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{option} {loader!r} cannot be imported ({error}); it must be on Python's path") from error
    made = make()
    if not isinstance(made, nn.Module):
        raise ValueError(f"{option} {loader!r} makes a {type(made).__name__}; it must return a torch.nn.Module")
    return made


def _pipeline(folder: Path, prompt: str, shape: tuple[int, ...], coupling: str) -> FlowField:
    if not (folder / "model_index.json").is_file():
        raise ValueError(f"{folder} has no model_index.json; name a folder that pipeline.save_pretrained wrote")
    if len(shape) != 3:
        raise ValueError(f"--shape {','.join(map(str, shape))} is none of latents; give channels,height,width")
    from diffusers import DiffusionPipeline

    load: Any = DiffusionPipeline.from_pretrained
    pipe = load(folder, local_files_only=True)
    return from_diffusers(pipe, prompt=prompt, latent_shape=(shape[0], shape[1], shape[2]), coupling=coupling)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
