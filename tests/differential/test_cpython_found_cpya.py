"""What CPython's own tests of its containers (make cpython-tests) have found."""

import copy

from differ import Cases, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class Plain:
    pass


# ---- comparisons that change what is compared --------------------------------------------------------------------------


@case(lambda: (t(3),))
def equal_dicts_cleared_by_a_key(x):
    class Key:
        def __eq__(self, other):
            one.clear()
            return True

        def __hash__(self):
            return 13

    one = {Key(): 0}
    two = {Key(): 0}
    return x + 1, one == two, len(one), len(two)


@case(lambda: (t(3),))
def equal_lists_cleared_by_an_item(x):
    class Item:
        def __eq__(self, other):
            one.clear()
            two.clear()
            return NotImplemented

    one, two = [Item(), 1], [Item(), 2]
    return x + 1, one == two, one, two


class SetWithHash(set):
    def __hash__(self):
        return 7


class OneHash:
    """Items of one hash, whose comparison counts."""

    def __init__(self):
        self.compared = 0

    def __hash__(self):
        return 42

    def __eq__(self, other):
        self.compared += 1
        return False


class NotReversible:
    __reversed__ = None

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return i


class OwnTuple(tuple):
    pass


class OwnFrozen(frozenset):
    pass


@case(lambda: (t(3),))
def set_with_its_own_hash_as_an_item(x):
    held = SetWithHash()
    items = {held}
    found = held in items
    items.remove(held)
    return x + 1, found, len(items)


@case(lambda: (t(3), {OneHash(): 1, OneHash(): 2}), skip="HashOrCompare")
def dict_of_keys_of_one_hash(x, d):
    return x + 1, list(d.values()), [k.compared for k in d]


@case(lambda: (t(3), {OneHash(), OneHash()}), skip="HashOrCompare")
def set_of_items_of_one_hash(x, s):
    return x + 1, len(list(s)), sum(k.compared for k in s)


@case(lambda: (t(3),), skip="HashOrCompare")
def setdefault_compares_once(x):
    one, two = OneHash(), OneHash()
    d = {one: 5}
    d.setdefault(two, 6)
    return x + 1, one.compared + two.compared, list(d.values())


@case(lambda: (t(3),), skip="HashOrCompare")
def update_from_a_dict_that_grows(x):
    class Key:
        def __hash__(self):
            return 0

        def __eq__(self, other):
            given[3] = 0
            return False

    given = {Key(): 0, 2: 0}
    d = {Key(): 0, 1: 1}
    try:
        d.update(given)
    except RuntimeError as error:
        return x + 1, str(error), len(given)
    return x + 1, len(d), len(given)


# ---- making and copying ------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def tuples_that_are_the_same(x):
    constant, made = (0, 1, 2), tuple(range(3))
    return x + 1, tuple(constant) is constant, made * 1 is made, tuple(made) is made, OwnTuple(made) * 1 is made


@case(lambda: (t(3),))
def immutable_subclasses_with_wrong_arguments(x):
    said = []
    for make in (lambda: OwnTuple(sequence=()), lambda: OwnTuple((), 2), lambda: OwnFrozen(sequence=()), lambda: OwnFrozen([], 2)):
        try:
            make()
        except TypeError as error:
            said.append(str(error))
    return x + 1, said


@case(lambda: (t(3),))
def deepcopy_of_a_slice(x):
    made = slice([1, 2], 3, None)
    deep = copy.deepcopy(made)
    return x + 1, deep is made, deep == made, deep.start is made.start, copy.copy(made) is made


@case(lambda: (t(3),))
def reversed_of_what_says_it_is_not(x):
    try:
        reversed(NotReversible())
    except TypeError as error:
        return x + 1, str(error)


# ---- iterators ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), iter({Plain(), Plain(), Plain()})))
def set_iterator_to_its_end(x, items):
    count = 0
    for item in items:
        item.seen = count
        count += 1
    return x + count


@case(lambda: (t(3),))
def call_that_ends_its_own_iterator(x):
    inside = False

    def step():
        nonlocal inside
        if inside:
            return 2
        inside = True
        list(iterator)
        return 1

    iterator = iter(step, 2)
    return x + 1, next(iterator, "ended")


test_cpython_found_cpya = cases.as_test(__name__)
