"""What CPython's own tests of its containers (make cpython-tests) have found."""

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


# ---- iterators ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), iter({Plain(), Plain(), Plain()})))
def set_iterator_to_its_end(x, items):
    count = 0
    for item in items:
        item.seen = count
        count += 1
    return x + count


test_cpython_found_cpya = cases.as_test(__name__)
