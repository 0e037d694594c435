from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import bkb
import bkb.aio

X = {"x": bkb.Float(0, 1)}


def test_ask_tell_and_views(shared: bkb.Client, name: str) -> None:
    async def main() -> None:
        client = bkb.aio.Client(shared)
        study = await client.create_study(name, X, minimize="loss")
        await study.enqueue({"x": 0.5})
        trial = await study.ask()
        assert trial["x"] == 0.5
        await trial.report(1.0, 0)
        assert not trial.should_prune()
        assert (await trial.tell(0.25, cost=1)).cost == 1
        for t in await study.ask(2):
            await study.tell(t, 1.0)
        await study.add_trials([{"params": {"x": 0.1}, "value": 3}])
        assert (await study.best_trial()).value == 0.25
        assert len(await study.trials()) == 4 and (await study.trial(3)).origin == "added"
        assert (await study.status()).completed == 4
        assert (await study.diagnosis()).results >= 0
        assert [t.number for t in await study.pareto_front()] == [0]
        with pytest.raises(ZeroDivisionError):
            async with await study.ask():
                _ = 1 / 0
        events = study.watch()
        assert [(await anext(events)).position for _ in range(3)] == [1, 2, 3]
        await study.pause()
        await study.resume()
        await study.finish("enough")
        assert name in [s.name async for s in client.studies()]
        assert (await client.load_study(name)).name == name
        await client.delete_study(name)

    asyncio.run(main())


def test_functions_on_a_file(tmp_path: Path) -> None:
    async def main() -> None:
        db = tmp_path / "t.db"
        await bkb.aio.create_study("s", X, minimize="loss", db=db)
        assert (await bkb.aio.load_study("s", db=db)).name == "s"
        assert [s.name async for s in bkb.aio.studies(db=db)] == ["s"]
        await bkb.aio.delete_study("s", db=db)
        server = bkb.aio.open_file(db).sync.server
        assert server is not None
        server.stop()

    asyncio.run(main())
    with pytest.raises(bkb.InvalidRequest):
        bkb.aio.connect("nowhere")


def test_optimize_async(shared: bkb.Client, name: str) -> None:
    async def main() -> None:
        client = bkb.aio.Client(shared)
        study = await client.create_study(name, X, minimize="loss", max_trials=12)
        running = most = 0

        async def objective(trial: bkb.aio.Trial) -> float:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.05)
            running -= 1
            if trial.number == 2:
                raise bkb.TrialPruned
            if trial.number == 3:
                raise KeyError("lost")
            return float(trial["x"])

        await study.optimize_async(objective, n_parallel=4, catch=KeyError)
        assert most > 1
        states = [t.state for t in await study.trials()]
        assert states[2:4] == ["pruned", "failed"] and states.count("completed") == 10
        with pytest.raises(bkb.InvalidRequest):
            await study.optimize_async(objective, n_parallel=0)

    asyncio.run(main())


def test_an_exception_cancels_the_others(shared: bkb.Client, name: str) -> None:
    async def main() -> None:
        client = bkb.aio.Client(shared)
        study = await client.create_study(name, X, minimize="loss")

        async def objective(trial: bkb.aio.Trial) -> float:
            await asyncio.sleep(0.2 if trial.number == 0 else 60)
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await study.optimize_async(objective, n_trials=3, n_parallel=3)
        states = sorted((t.state, t.reason) for t in await study.trials())
        assert states == [("failed", "cancelled")] * 2 + [("failed", "crash")]

    asyncio.run(main())


def test_cancel_a_run(shared: bkb.Client, name: str) -> None:
    async def main() -> None:
        study = await bkb.aio.Client(shared).create_study(name, X, minimize="loss")

        async def objective(trial: bkb.aio.Trial) -> float:
            await asyncio.sleep(60)
            return 1.0

        run = asyncio.ensure_future(study.optimize_async(objective, n_parallel=2))
        while (await study.status()).running < 2:
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert {(t.state, t.reason) for t in await study.trials()} == {("failed", "cancelled")}

    asyncio.run(main())


def test_a_refused_value_cancels_the_others(shared: bkb.Client, name: str) -> None:
    async def main() -> None:
        study = await bkb.aio.Client(shared).create_study(name, X, minimize="loss")

        async def objective(trial: bkb.aio.Trial) -> str:
            await asyncio.sleep(0.2 if trial.number == 0 else 60)
            return "no number"

        with pytest.raises(bkb.InvalidRequest, match="no number"):
            await study.optimize_async(objective, n_parallel=2)
        assert sorted(t.reason for t in await study.trials()) == ["cancelled", "crash"]

    asyncio.run(main())
