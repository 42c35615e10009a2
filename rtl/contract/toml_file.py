"""A TOML file as a table, or one sentence."""

import tomllib
from pathlib import Path
from typing import Any

from rtl.contract.config_fields import ConfigError

__all__ = ["toml_table"]


def toml_table(path: Path, what: str) -> dict[str, Any]:
    """The table in a `what` file. Errors: ConfigError if there is none, it cannot be read, or it is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no {what} file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
