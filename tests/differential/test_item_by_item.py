"""What takes items one by one leaves those behind an error, or behind what it looks for, where they are."""

import torch
from differ import Cases, outcome, t

cases = Cases()
case = cases.case


def told(log, *items):
    for item in items:
        log.append(item)
        yield item


@case(lambda: (t(3),))
def found_in_a_generator(x):
    log = []
    g = told(log, 1, 2, 3, 4)
    return x + 1, 2 in g, next(g), 9 in g, 1 in g, log


@case(lambda: (t(3),))
def found_in_a_map(x):
    log = []
    m = map(lambda v: v * 2, told(log, 1, 2, 3))
    return x + 1, 4 in m, list(m), log


@case(lambda: (t(3),))
def found_by_an_iterator_class(x):
    class Count:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            return self.n

    c = Count()
    return x + 1, 3 in c, c.n, next(c)


def taken(name, action, **expect):
    def fn(x):
        log = []
        said = outcome(lambda: action(log))
        return x + 1, said, log

    fn.__name__ = name
    cases.case(lambda: (t(3),), **expect)(fn)


taken("sum_of_none", lambda log: sum(told(log, 1, 2, 3), None))
taken("sum_of_lists", lambda log: sum(told(log, 1, 2, 3), []))
taken("dict_of_numbers", lambda log: dict(told(log, 1, 2)))
taken("set_of_lists", lambda log: set(told(log, [1], [2])))
taken("frozenset_of_lists", lambda log: frozenset(told(log, [1], [2])), skip="*")
taken("min_of_two_kinds", lambda log: min(told(log, 1, "a", 2)))
taken("extended_until_it_raises", lambda log: log.extend(1 // (2 - v) for v in told([], 1, 2, 3)))

taken("sum_of_numbers_then_a_string", lambda log: sum(told(log, 1, 2.5, True, "a", 4)))
taken("sum_of_text", lambda log: sum(told(log, "a", "b"), ""))
taken("dict_of_longer_items", lambda log: dict(told(log, (1, 2), (1, 2, 3), (4, 5)), a=1))
taken("dict_of_other_pairs", lambda log: dict(told(log, "ab", [3, 4], {5: 6, 7: 8}), a=1))
taken("updated_until_it_raises", lambda log: {1}.update(told(log, 2, [3], 4)))
taken("max_of_nothing", lambda log: (max(told(log), default=3), max(told(log))))
taken("extended_by_a_hint", lambda log: log.extend(Hinting(log)))


class Hinting:
    def __init__(self, log):
        self.log = log

    def __iter__(self):
        self.log.append("iter")
        return told(self.log, 1, 2)

    def __length_hint__(self):
        self.log.append("hint")
        return 5


@case(lambda: (t(3),))
def a_list_grows_under_the_generators_eyes(x):
    lengths = []

    def seen():
        for _ in range(3):
            yield len(lengths)

    lengths.extend(seen())
    lengths += seen()
    lengths[len(lengths) :] = seen()
    return x + 1, lengths


@case(lambda: (t(3),))
def sets_are_read_by_their_tables(x):
    class Lying(set):
        def __iter__(self):
            return iter([7])

    s, made = Lying([1, 2]), set()
    made.update(s)
    return x + 1, sorted(set(s)), sorted(frozenset(s)), sorted(made), sorted({0, *s}), sorted({0} | s), sorted(s)


def broken_in_the_middle(name, action, graphs):
    def items(log, *given):
        for item in given:
            log.append(item)
            if item == 2:
                torch._dynamo.graph_break()
            yield item

    def fn(x):
        log = []
        said = outcome(lambda: action(items, log))
        return x + 1, said, log

    fn.__name__ = "broken_" + name
    cases.case(lambda: (t(3),), graphs=graphs, skip="*")(fn)


broken_in_the_middle("sum", lambda items, log: sum(items(log, 1, 2, None, 4)), 1)
broken_in_the_middle("sum_of_floats", lambda items, log: sum(items(log, 0.1, 2, 0.2, 0.3, 1e17, 3.0, -1e17)), 1)
broken_in_the_middle("set", lambda items, log: set(items(log, 1, 2, [3], 4)), 1)
broken_in_the_middle("dict", lambda items, log: dict(items(log, (1, 2), 2, 3)), 1)
broken_in_the_middle("max", lambda items, log: max(items(log, 1, 2, "a", 4)), 1)
broken_in_the_middle("extend", lambda items, log: log.extend(items(log, 1, 2, 3)), 1)
broken_in_the_middle("update", lambda items, log: {1}.update(items(log, 1, 2, [3], 4)), 1)

test_item_by_item = cases.as_test(__name__)
