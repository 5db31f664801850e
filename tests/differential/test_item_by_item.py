"""What takes items one by one leaves those behind an error, or behind what it looks for, where they are."""

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


def taken(name, action):
    def fn(x):
        log = []
        said = outcome(lambda: action(log))
        return x + 1, said, log

    fn.__name__ = name
    cases.case(lambda: (t(3),), skip="*")(fn)


taken("sum_of_none", lambda log: sum(told(log, 1, 2, 3), None))
taken("sum_of_lists", lambda log: sum(told(log, 1, 2, 3), []))
taken("dict_of_numbers", lambda log: dict(told(log, 1, 2)))
taken("set_of_lists", lambda log: set(told(log, [1], [2])))
taken("frozenset_of_lists", lambda log: frozenset(told(log, [1], [2])))
taken("min_of_two_kinds", lambda log: min(told(log, 1, "a", 2)))
taken("extended_until_it_raises", lambda log: log.extend(1 // (2 - v) for v in told([], 1, 2, 3)))

test_item_by_item = cases.as_test(__name__)
