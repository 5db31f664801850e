"""Objects that must stay different: keys by identity, and what is written to."""

import pytest
import torch

import cdynamo


def guards_of(n):
    boxes = [{"n": i} for i in range(n)]

    def f(x, boxes):
        for b in boxes:
            b["n"] = b["n"] + 1
        return x + 1

    return len(cdynamo.explain(f)(torch.ones(2), boxes).out_guards)


def test_facts_about_written_objects_grow_linearly():
    few, many = guards_of(20), guards_of(80)
    assert many < 4.5 * few


@pytest.mark.parametrize("n", [2, 3, 40])
def test_written_objects_that_become_one(n):
    def f(x, boxes):
        for i, b in enumerate(boxes):
            b.append(i)
        return x + len(boxes[0])

    graphs = []
    compiled = cdynamo.compile(f, backend=lambda gm, _: graphs.append(gm) or gm.forward)
    x = torch.ones(2)
    for _ in range(2):
        assert compiled(x, [[] for _ in range(n)])[0] == 2
    assert len(graphs) == 1
    for i, j in ((0, 1), (0, n - 1), (n - 2, n - 1)):
        boxes, plain = [[] for _ in range(n)], [[] for _ in range(n)]
        boxes[i], plain[i] = boxes[j], plain[j]
        assert torch.equal(compiled(x, boxes), f(x, plain)) and boxes == plain
    assert compiled(x, [[] for _ in range(n)])[0] == 2


def test_a_read_one_that_becomes_the_written_one():
    def f(x, written, read):
        written.append(1)
        return x + len(read)

    compiled = cdynamo.compile(f, backend="eager")
    x = torch.ones(2)
    one: list = [5, 6]
    assert compiled(x, [], [5, 6])[0] == 3
    assert compiled(x, one, one)[0] == 4 and one == [5, 6, 1]
    shared: list = []
    assert compiled(x, [], shared)[0] == 1


def test_two_read_ones_may_be_one():
    def f(x, written, a, b):
        written.append(1)
        return x + len(a) + len(b)

    graphs = []
    compiled = cdynamo.compile(f, backend=lambda gm, _: graphs.append(gm) or gm.forward)
    x, one = torch.ones(2), [1]
    assert compiled(x, [], [1], [1])[0] == 3 and compiled(x, [], one, one)[0] == 3
    assert len(graphs) == 1
