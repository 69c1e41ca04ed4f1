"""The order of the tests, by a seed, and the half that runs, by the commit."""

from dataclasses import dataclass
from pathlib import Path

from tests import conftest
from tests.conftest import left_out


@dataclass(frozen=True)
class Item:
    path: Path
    number: int


FILES = [Path("a.py"), Path("b.py"), Path("c.ipynb"), Path("d.py")]
ITEMS = [Item(path, number) for path in FILES for number in range(9)]


def shuffled(seed):
    items = list(ITEMS)
    conftest._shuffle(items, seed)
    return items


def test_a_seed_gives_its_order_again():
    one = shuffled("7")
    assert one == shuffled("7") and one != shuffled("8") and one != ITEMS
    assert sorted(one, key=ITEMS.index) == ITEMS


def test_files_stay_together_and_cells_in_their_order():
    orders = [shuffled(str(seed)) for seed in range(5)]
    for items in orders:
        paths = [item.path for item in items]
        assert len(set(zip(paths, paths[1:], strict=False))) == 2 * len(FILES) - 1
        cells = [item.number for item in items if item.path.suffix == ".ipynb"]
        assert cells == list(range(9))
    assert len({tuple(item.path for item in items) for items in orders}) > 1


class Timed(Item):
    def get_closest_marker(self, name):
        return name if name == "long" and self.number else None


def test_the_longest_come_first():
    recorded = conftest.recorded_seconds()
    root = conftest.HERE.parent
    assert all((root / name).is_file() for name in recorded)
    slow, quick = (choose(recorded, key=recorded.get) for choose in (max, min))
    new = "tests/test_that_is_new.py"
    items = [Timed(root / name, 0) for name in (quick, new, slow)]
    items.append(Timed(root / quick, 1))
    items.sort(key=conftest.seconds_of, reverse=True)
    told = [(item.path.relative_to(root).as_posix(), item.number) for item in items]
    assert told == [(quick, 1), (new, 0), (slow, 0), (quick, 0)]


@dataclass
class Case:
    path: Path
    nodeid: str
    whole: bool = False

    def get_closest_marker(self, name):
        return self.whole if name == "whole" else None


def test_tests_of_few_cases_take_no_turns():
    path = conftest.HERE / "numpy" / "test_x.py"
    few = [Case(path, f"{path}::test_few[{i}]") for i in range(conftest.MANY - 1)]
    many = [Case(path, f"{path}::test_many[{i}]") for i in range(60)]
    whole = [Case(path, f"{path}::test_whole[{i}]", True) for i in range(60)]
    items = [*few, *many, *whole]
    waiting = conftest._take_turns(items)
    assert 36 < len(waiting) < 60 and all(case in many for case in waiting)
    assert items == [c for c in [*few, *many, *whole] if c not in waiting]


def test_every_claim_has_its_turn():
    names = [f"tests/views/claims/test_x.py::test_y[{i}]" for i in range(400)]
    turns = [[left_out(name, str(commit)) for name in names] for commit in range(60)]
    # One commit leaves out 11/12 of 400, 367 of them; all of 60 (11/12)^60, 2 of them.
    assert all(340 < sum(turn) < 390 for turn in turns)
    assert turns[0] == [left_out(name, "0") for name in names]
    assert sum(all(of_one) for of_one in zip(*turns, strict=True)) < 10
