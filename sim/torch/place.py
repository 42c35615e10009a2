"""Where in the user's file a node of a graph comes from."""

import re
from pathlib import Path

import torch
from torch import fx

__all__ = ["is_users", "line_of", "name_of"]

_FRAME = re.compile(r'File "(.+)", line (\d+), in ')

_NOT_THE_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_EXAMPLES = str(Path(__file__).parent / "examples")


def is_users(path: str) -> bool:
    """Whether a file is neither torch's nor ours."""
    return path.startswith(_EXAMPLES) or not path.startswith(_NOT_THE_USERS)


def line_of(node: fx.Node) -> str:
    """FILE.py:LINE, the innermost one outside torch; empty if it is not known."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [(path, number) for path, number in frames if is_users(path)] or frames
    return f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""


def name_of(node: fx.Node) -> str:
    """aten.addmm, as the user knows it."""
    name = str(node.target)
    known = {
        "plexus.attention.default": "aten.scaled_dot_product_attention",
        "plexus.rms_norm.default": "aten.rms_norm",
    }
    return known.get(name, name.removesuffix(".default"))
