"""The golden hart's vectors against QEMU's: python -m verif.truth.vectors [--records N] [--seed S] [--write].

Records are made of seeds, by VLEN. Without --write it compares, all there is to compare; with it, digests of what QEMU
left are renewed, which a unit test holds the golden hart to where there is no QEMU.
"""

import argparse
import sys
from collections import Counter

import numpy as np

from firmware.gpsimd.errors import FirmwareError
from verif.checks.vector_golden import golden_left
from verif.checks.vector_records import Records, random_records
from verif.truth.differences import difference
from verif.truth.digests import FILE, SEEDS, VLENS, Digests, label
from verif.truth.qemu import Qemu

CHUNK = 10000
VSTART_STAYS = "vstart stays if it is behind the last element"
"""What QEMU does. 3.7: all vector instructions "reset the vstart CSR to zero at the end of execution"."""
ILLEGAL = 4
UNUSED = 4  # register x that holds the executor's data


def _unlike(ours: np.void, theirs: np.void) -> list[str]:
    """Names of what differs between results."""
    if ours["signal"] != theirs["signal"]:
        return [f"illegal {ours['signal'] == ILLEGAL}, QEMU {theirs['signal'] == ILLEGAL}"]
    if ours["signal"]:
        return [] if ours["signal"] == ILLEGAL else ["both fault"]
    names = [name for name in ("vl", "vtype", "vxsat", "vxrm", "vstart") if ours[name] != theirs[name]]
    x = [f"x{n}" for n in np.flatnonzero(ours["x"] != theirs["x"]) if n != UNUSED]
    return names + x + [f"v{n}" for n in np.flatnonzero((ours["v"] != theirs["v"]).any(1))]


def _compare(qemu: Qemu, records: Records, legal: Counter[str], known: Counter[str]) -> int:
    """Records that differ without a reason, printed."""
    ours, our_memory = golden_left(records)
    theirs, their_memory = qemu.left(records)
    if len(ours) != len(theirs) or len(our_memory) != len(their_memory):
        raise RuntimeError("QEMU did not execute all records")
    bad = 0
    memories = iter(zip(our_memory, their_memory, strict=True))
    for given, mine, other in zip(records.given, ours, theirs, strict=True):
        word, vtype = int(given["word"]), int(given["vtype"])
        found = _unlike(mine, other)
        if given["memory"]:
            one, two = next(memories)
            found += ["memory"] if one != two and not mine["signal"] else []
        reason = difference(word, vtype) if other["signal"] == 0 else None
        if found == ["vstart"] and mine["vstart"] == 0 and other["vstart"] == given["vstart"]:
            known[VSTART_STAYS] += 1
        elif reason and mine["signal"] == ILLEGAL:
            known[reason] += 1
        elif found or reason:
            bad += 1
            if bad <= 20:
                state = f"vtype={vtype:#x} vl={given['vl']} vstart={given['vstart']}"
                print(f"{label(word)} {word:#010x} {state}: {found or [reason]}")
        else:
            legal.update([label(word)] if mine["signal"] == 0 else [])
    return bad


def main() -> int:
    """See above; 1 if something differs, 2 if there is no QEMU or compiler."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--records", type=int, default=100000, help="of each VLEN")
    arguments.add_argument("--vlen", type=int, choices=VLENS, action="append", help="default: all")
    arguments.add_argument("--seed", type=int, default=1000)
    arguments.add_argument("--qemu", help="the program, if it is in no folder of PATH")
    arguments.add_argument("--write", action="store_true", help=f"renew {FILE.name}")
    chosen = arguments.parse_args()
    try:
        qemu = Qemu(chosen.qemu)
    except (RuntimeError, FirmwareError) as error:
        print(error)
        return 2
    print(qemu.version())
    if chosen.write:
        digests = Digests()
        for vlen, seed, count in SEEDS:
            records = random_records(seed, vlen, count)
            left, memory = qemu.left(records)
            if set(left["signal"].tolist()) - {0, ILLEGAL}:
                raise RuntimeError(f"seed {seed}: a record faults in memory, which says nothing")
            digests.add(records, left, memory)
        FILE.write_text(digests.text())
        print(f"{FILE.name}: {digests.records} records, {len(FILE.read_text())} bytes")
        return 0
    bad = 0
    for vlen in chosen.vlen or VLENS:
        legal, known, wrong = Counter[str](), Counter[str](), 0
        for begin in range(0, chosen.records, CHUNK):
            records = random_records(chosen.seed + begin // CHUNK, vlen, min(CHUNK, chosen.records - begin))
            wrong += _compare(qemu, records, legal, known)
        print(f"VLEN {vlen}: {chosen.records} records, {sum(legal.values())} legal, {wrong} differ; {dict(known)}")
        print(f"  {len(legal)} instructions, least often: {legal.most_common()[-3:]}", flush=True)
        bad += wrong
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
