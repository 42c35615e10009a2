"""Sessions, handles and results of `import plexus`: whose memory, how much of HBM, by which threads, and how long."""

import gc
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus
from rtl.contract.isa import Queue

GOLDEN: Any = {"config": "tiny", "device": "golden"}
MIB = 1 << 20


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def doubled(k: plexus.Kernel, x: Any) -> None:
    rows, columns = x.shape
    tile = k.sbuf("tile", partitions=rows, columns=columns, dtype=x.dtype)
    k.dma(tile[:, :], x[:, :])
    k.vector.tensor_tensor(tile[:, :], tile[:, :], "add", tile[:, :])
    k.dma(k.hbm("y", (rows, columns), x.dtype)[:, :], tile[:, :])


def session(mib: int = 16) -> plexus.Session:
    return plexus.Session("tiny", device="golden", settings={"hbm.capacity_mib": mib})


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int32"])
def test_put_copies(kind: str) -> None:
    with session() as s:
        x = np.arange(6).reshape(2, 3).astype(kind)
        kept, view = s.put(x), s.put(memoryview(x) if kind in ("float32", "int32") else x)
        x[:] = 9
        assert np.array_equal(kept.numpy().astype(int), [[0, 1, 2], [3, 4, 5]])
        assert np.array_equal(view.numpy().astype(int), [[0, 1, 2], [3, 4, 5]])


def test_handles_are_immutable() -> None:
    with session() as s:
        result = plexus.gemm(normal(2, 3), normal(3, 4), session=s)
        kept = s.put(result["c"])
        was = kept.numpy()
        result["c"][:] = 0
        assert np.array_equal(kept.numpy(), was) and np.array_equal(result.tensor.numpy(), was)
        with pytest.raises(ValueError, match="read-only"):
            kept.bits.bits[0, 0] = 1
        with pytest.raises(AttributeError):
            kept.name = "other"  # type: ignore[misc]
        with pytest.raises(ValueError, match="copy=False"):
            np.asarray(kept, copy=False)
        assert np.array_equal(np.asarray(kept), was) and s.put(kept) is kept and s.hbm_used_bytes == 2 * was.nbytes


def test_what_a_call_needs_counts_beside_what_is_kept() -> None:
    with session(1) as s:
        kept = s.put(np.zeros((512, 512), np.float32)[:500])
        with pytest.raises(plexus.Error, match=r"doubled needs 65536 bytes of HBM beside the 1024000 that the session"):
            s.run(doubled, {"x": np.zeros((8, 1024), np.float32)})
        assert s.run(doubled, {"x": np.zeros((8, 64), np.float32)}).output.shape == (8, 64)
        with pytest.raises(plexus.Error, match="of 40000 bytes does not fit beside the 1024000"):
            s.put(np.zeros(10000, np.float32))
    assert kept.shape == (500, 512)


def test_an_operand_that_is_kept_counts_once() -> None:
    with session(1) as s:
        x = s.put(np.zeros((256, 400), np.float32))
        assert plexus.softmax(x, session=s)["y"][0, 0] == np.float32(1 / 400) and s.hbm_used_bytes == 409600


def test_a_tensor_of_another_session_is_an_operand_that_counts() -> None:
    with session(1) as s, session() as other:
        foreign = other.put(np.ones((512, 200), np.float32))
        kept = s.put(np.zeros((512, 150), np.float32))
        with pytest.raises(plexus.Error, match="beside the 307200 that"):
            plexus.softmax(foreign, session=s)
        del kept
        gc.collect()
        assert plexus.softmax(foreign, session=s)["y"][0, 0] == np.float32(1 / 200) and s.hbm_used_bytes == 0
    assert foreign.shape == (512, 200)


def test_a_run_that_is_over_is_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with session(1) as s:
        monkeypatch.setattr(s, "need_room", lambda program: None)
        kept = s.put(np.zeros((8, MIB // 32 - 4), np.float32))
        result = plexus.softmax(np.zeros((2, 64), np.float32), session=s)
        assert result.output.shape == (2, 64) and s.hbm_used_bytes == kept.size_bytes + 512


def test_what_hbm_cannot_hold_is_refused_at_once() -> None:
    begin = time.monotonic()
    x = np.zeros((2048, 2048), np.float32)
    with pytest.raises(plexus.Error, match=r"needs \d+ bytes of HBM with tensor b, more than hbm.capacity_mib = 16"):
        plexus.gemm(x, x, **GOLDEN)
    assert time.monotonic() - begin < 10


def test_an_array_larger_than_any_memory_is_not_made() -> None:
    huge = np.broadcast_to(np.float32(1), (1, 1 << 46))
    with pytest.raises(plexus.Error, match=r"array x \(1, 70368744177664\) has 70368744177664 elements"):
        plexus.softmax(huge, **GOLDEN)
    with pytest.raises(plexus.Error, match="array x"):
        plexus.run(doubled, {"x": huge}, **GOLDEN)
    with session() as s, pytest.raises(plexus.Error, match="array tensor"):
        s.put(huge)


def without_memory(k: plexus.Kernel, x: Any) -> None:
    np.zeros(1 << 60, np.uint8)


def test_memory_of_the_host_that_is_not_there_is_an_error_of_ours() -> None:
    with pytest.raises(plexus.Error, match="more memory than the host has"):
        plexus.run(without_memory, {"x": normal(1, 2)}, **GOLDEN)


def test_threads_share_a_session() -> None:
    wrong: list[BaseException] = []

    def work(s: plexus.Session) -> None:
        try:
            kept = [s.put(np.zeros(64, np.float32)) for _ in range(400)]
            for place in range(400):
                kept[place] = s.put(np.zeros(64, np.float32))
                assert s.hbm_used_bytes >= 0
                repr(s)
        except BaseException as error:
            wrong.append(error)

    with session() as s:
        threads = [threading.Thread(target=work, args=(s,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        gc.collect()
        assert s.hbm_used_bytes == 0


def test_many_handles_take_time_in_proportion() -> None:
    with session() as s:
        begin = time.monotonic()
        kept = [s.put(np.float32([1])) for _ in range(20_000)]
        assert time.monotonic() - begin < 20 and s.hbm_used_bytes == 4 * len(kept)


def stuck(k: plexus.Kernel, x: Any) -> None:
    doubled(k, x)
    k.wait(plexus.Queue.VECTOR, k.semaphore("never"), 1)


def test_errors_tensors_and_results_can_be_pickled() -> None:
    with pytest.raises(plexus.RunError) as caught:
        plexus.run(stuck, {"x": normal(3, 4)}, **GOLDEN)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is plexus.RunError and str(again) == str(caught.value)
    assert again.result.report == caught.value.result.report
    result = plexus.softmax(normal(2, 3), **GOLDEN)
    copy = pickle.loads(pickle.dumps(result))
    assert np.array_equal(copy["y"], result["y"]) and copy.tensor.name == "y"
    assert not copy.tensor.bits.bits.flags.writeable


def test_cycles_of_a_session_are_those_of_failed_calls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    result = plexus.softmax(normal(2, 3), **GOLDEN)
    timed = plexus.Result(tensors=result.tensors, report=result.report, cycles=100, device="rtl")

    def fails(*_: Any) -> plexus.Result:
        raise plexus.RunError("it differs", timed)

    monkeypatch.setattr("sim.api.execute._on_golden", fails)
    with session() as s:
        with pytest.raises(plexus.RunError, match="it differs"):
            plexus.softmax(normal(2, 3), session=s)
        assert s.cycles == 100


def test_a_result_is_a_mapping_of_its_outputs() -> None:
    result = plexus.softmax(normal(2, 3), **GOLDEN)
    assert "y" in result and "z" not in result and list(result) == ["y"] and len(result) == 1
    assert dict(result)["y"] is result["y"] and result == result and result != plexus.softmax(normal(2, 3), **GOLDEN)
    assert {result: 1}[result] == 1


def measured(k: plexus.Kernel, x: Any, metrics: Any) -> plexus.Program:
    doubled(k, x)
    return k.program(metrics=metrics)


def test_metrics_of_numpy_are_plain(tmp_path: Path) -> None:
    figures = {
        "largest": np.float32(1.5),
        "count": np.int64(3),
        "right": np.bool_(True),
        "half": ml_dtypes.bfloat16(0.5),
        "each": np.arange(3),
        "more": {"of": (np.float16(2), None, "text")},
    }
    k_of = lambda k, x: measured(k, x, lambda outputs: figures)  # noqa: E731
    result = plexus.run(k_of, {"x": normal(2, 3)}, folder=tmp_path, **GOLDEN)
    assert result.metrics == {
        "largest": 1.5,
        "count": 3,
        "right": True,
        "half": 0.5,
        "each": [0, 1, 2],
        "more": {"of": [2.0, None, "text"]},
    }
    assert type(result.metrics["count"]) is int and (tmp_path / "report.json").exists()


@pytest.mark.parametrize("metrics", [lambda outputs: 1 / 0, lambda outputs: 3, lambda outputs: {"x": object()}])
def test_metrics_that_fail_leave_the_result(metrics: Any, tmp_path: Path) -> None:
    x = normal(2, 3)
    with pytest.raises(plexus.RunError, match="has run, and its metrics fail") as caught:
        plexus.run(lambda k, x: measured(k, x, metrics), {"x": x}, folder=tmp_path, **GOLDEN)
    assert np.array_equal(caught.value.result["y"], 2 * x) and (tmp_path / "report.json").exists()


def silent(k: plexus.Kernel, x: Any) -> None:
    doubled(k, x)
    k.hbm("z", (2, 2), "fp32")


def test_a_note_names_an_output_that_nothing_writes() -> None:
    result = plexus.run(silent, {"x": normal(2, 3)}, **GOLDEN)
    assert [note for note in result.report["notes"] if "nothing writes" in note] == [
        "nothing writes output z: its bits are those that memory had before"
    ]


def test_names() -> None:
    assert plexus.Queue is Queue and plexus.__version__
