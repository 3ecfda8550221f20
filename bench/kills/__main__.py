"""`python -m bench.kills`: kill Parlour at random moments, start it again, and look for what is lost.

    python -m bench.kills --kills 50 --seed 7 --results kills.json
    python -m bench.kills --sum kills.json

A seed decides what is done in which order; the moment of each kill too, but where in the work that falls is up to the
machine. Parts add up in the file of results. Most kills hit the engine in a process that is forked from this one, so
that a start costs a tenth of a second; `--page N` adds N that hit the whole page, over HTTP. With `--vectors` documents
are made into vectors, too, and are killed meanwhile.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Figure, report
from bench.kills.forked import Life, prepare
from bench.kills.kinds import LIVING
from bench.kills.ledger import Ledger
from bench.kills.older import OLDER, opened_twice

OF_ONE_HOME = 25
KINDS = (*LIVING, "starting", "migration")
WITH_VECTORS = ("reading", "reading", "reading", "delete", "starting")


class Part:
    """Some kills, one after the other.

    Args:
        folder: Where the data folders are made.
        seed: Decides what is done.
        vectors: Whether documents are made into vectors; then only what has to do with them is done.
    """

    def __init__(self, folder: Path, seed: int, *, vectors: bool = False) -> None:
        self.folder = folder
        self.kinds = WITH_VECTORS if vectors else KINDS
        self.retrieval = "hybrid" if vectors else "keyword"
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.starts: list[float] = []
        self.acknowledged = 0
        self._homes = 0
        self._new_home()

    def _new_home(self) -> None:
        if self._homes and not self.wrong:  # what went wrong can be looked at
            shutil.rmtree(self.home)
        self._homes += 1
        self.home = self.folder / f"home{self._homes}"
        self.ledger = Ledger()

    def moment(self, longest: float) -> float:
        """Seconds until the kill: half of them anywhere, half of them soon, short ones as often as long ones."""
        if self.chance.random() < 0.5:
            return self.chance.random() * longest
        return 0.003 * (longest / 0.003) ** self.chance.random()

    def one(self) -> None:
        """Start, check everything so far, work, kill."""
        kind = self.chance.choice(self.kinds)
        number = sum(self.kills.values()) + 1
        seed = self.chance.randrange(1 << 30)
        if number % OF_ONE_HOME == 0:
            self.check()
            self._new_home()
        if kind == "migration":
            self._migration()
        else:
            self._living(kind, seed)
        self.kills[kind] += 1

    def _living(self, kind: str, seed: int) -> None:
        life = self._life()
        if kind == "starting":
            time.sleep(self.moment(0.4))
        else:
            try:
                self._checked(life)
            except RuntimeError as error:
                self.wrong.append(f"{kind}: {error}")
            else:
                life.do(kind, seed=seed)
                self._heard(life.watch(self.moment(2.0)), kind)
        self._end(life, kind)

    def _end(self, life: Life, kind: str) -> None:
        self._heard(life.kill(), kind)
        self.wrong += [f"{kind}: a process was left: {one}" for one in life.left_behind()]

    def _heard(self, heard: list[dict[str, Any]], kind: str) -> None:
        for told in heard:
            self.ledger.note(told)
            self.acknowledged += told.get("ack") in {"messages", "replies", "files", "documents", "deleted"}
            if "failed" in told:
                self.wrong.append(f"{kind}: {told['failed']}")

    def _checked(self, life: Life) -> None:
        life.wait_for("up")
        life.do("check", known=self.ledger.as_dict())
        wrong = life.wait_for("checked")["checked"]
        self.wrong += [f"start {sum(self.kills.values())}: {one}" for one in wrong]
        self.ledger.asked.clear()  # they were answered

    def _life(self) -> Life:
        return Life(self.home, self.folder / "lives.log", self.retrieval)

    def check(self) -> None:
        """Start once more, check, and end in peace."""
        life = self._life()
        try:
            self._checked(life)
            life.do("end")
            life.wait_for("ended")
        except RuntimeError as error:
            self.wrong.append(f"last check: {error}")
        life.kill()

    def _migration(self) -> None:
        schema = self.chance.choice(OLDER)
        home = self.folder / f"old{sum(self.kills.values())}"
        self.wrong += opened_twice(home, schema, self._once_killed, self._once_whole)

    def _once_killed(self, home: Path) -> None:
        life = Life(home, self.folder / "lives.log")
        time.sleep(self.moment(0.4))
        life.kill()

    def _once_whole(self, home: Path) -> None:
        life = Life(home, self.folder / "lives.log")
        try:
            life.wait_for("up")
            life.do("end")
            life.wait_for("ended")
        finally:
            life.kill()


def add_up(results: Path, told: dict[str, Any]) -> dict[str, Any]:
    """Put a part into the file of results; returns the sum."""
    parts: list[dict[str, Any]] = json.loads(results.read_text("utf-8")) if results.exists() else []
    if told:
        parts = [one for one in parts if (one["seed"], one["where"]) != (told["seed"], told["where"])] + [told]
        draft = results.with_name(f".{results.name}.part")
        draft.write_text(json.dumps(parts, indent=1), "utf-8")
        draft.replace(results)
    kinds: Counter[str] = Counter()
    for part in parts:
        kinds.update({f"{part['where']}: {kind}": count for kind, count in part["kinds"].items()})
    return {
        "kills": sum(kinds.values()),
        "kinds": dict(sorted(kinds.items())),
        "acknowledged": sum(part["acknowledged"] for part in parts),
        "wrong": [what for part in parts for what in part["wrong"]],
        "cpu": sum(part["cpu"] for part in parts),
        "seconds": sum(part["seconds"] for part in parts),
    }


def main() -> int:
    """One part, or the sum of all."""
    parser = argparse.ArgumentParser(prog="python -m bench.kills")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--page", type=int, default=0, help="kills of the whole page, over HTTP")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vectors", action="store_true", help="search by meaning, too: vectors are made meanwhile")
    parser.add_argument("--results", type=Path, default=Path("kills.json"))
    parser.add_argument("--sum", action="store_true", help="only add up the parts of the file of results")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    given = parser.parse_args()
    wrong: list[str] = []
    if not given.sum:
        with TemporaryDirectory(prefix="parlour-kills-") as made:
            folder = given.keep or Path(made)
            folder.mkdir(parents=True, exist_ok=True)
            for where, count in (("engine", given.kills), ("page", given.page)):
                if count:
                    wrong += _part(folder, where, count, given)
    summed = add_up(given.results, {})
    print(json.dumps(summed, indent=1, ensure_ascii=False), file=sys.stderr)
    report(
        [
            Figure(
                f"{summed['kills']} kills at random moments: things lost, doubled or stuck",
                len(summed["wrong"]),
                0,
                "",
                f"{summed['acknowledged']} acknowledged; {summed['kinds']}",
            )
        ]
    )
    return 1 if wrong else 0


def _part(folder: Path, where: str, count: int, given: argparse.Namespace) -> list[str]:
    began, cpu = time.monotonic(), time.process_time() + _children()
    if where == "page":
        from bench.kills.page import PagePart

        part: Any = PagePart(folder, given.seed, vectors=given.vectors)
    else:
        prepare()
        part = Part(folder, given.seed, vectors=given.vectors)
    told = {"where": f"{where} with vectors" if given.vectors else where, "seed": given.seed}

    def kept() -> None:
        figures = {"kinds": dict(part.kills), "acknowledged": part.acknowledged, "wrong": part.wrong}
        spent = {"seconds": time.monotonic() - began, "cpu": time.process_time() + _children() - cpu}
        add_up(given.results, told | figures | {name: round(value, 1) for name, value in spent.items()})

    for number in range(1, count + 1):
        part.one()
        if number % 10 == 0 or number == count:
            kept()
            print(f"{where} {number}/{count}, {len(part.wrong)} wrong", file=sys.stderr, flush=True)
    part.check()
    kept()
    return part.wrong


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
