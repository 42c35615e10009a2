"""The tables in the documents are those of the contract."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_documents_have_the_contracts_tables() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "contract_tables"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
