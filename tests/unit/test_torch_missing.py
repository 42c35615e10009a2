"""`import plexus` without PyTorch, and with one that is too old."""

import subprocess
import sys
from types import ModuleType

import pytest

import plexus
import sim.torch.autoload as autoload


def test_plexus_imports_no_torch() -> None:
    code = "import plexus, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_torch_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoload.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(plexus.Error, match="^torch is not installed: make torch puts it into .venv$"):
        autoload.need_torch()


def test_an_old_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ModuleType("torch")
    old.__version__ = "2.5.1+cpu"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", old)
    monkeypatch.setattr(autoload.importlib.util, "find_spec", lambda name: object())
    with pytest.raises(plexus.Error, match="^torch is 2.5.1.cpu, older than 2.14"):
        autoload.need_torch()


def test_plexus_has_no_other_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'jax'"):
        getattr(plexus, "jax")  # noqa: B009
