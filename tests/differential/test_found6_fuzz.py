"""What random programs (make fuzz) found since their generator knows more of the language."""

from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


def aliased():
    x = t(3)
    return x, x[:]


# ---- memory ------------------------------------------------------------------------------------------------------------


@case(aliased)
def looked_at_and_handed_back_beside_a_write(x, y):
    size = x.shape[0]
    y.add_(1)
    return x, y, size


@scenario()
def handed_back_and_overlapping_later():
    together = False

    def run(x, y):
        size = x.shape[0]
        y.add_(1)
        return x, y, size

    def change():
        nonlocal together
        together = True

    return Setup(run, lambda: aliased() if together else (t(3), t(3, seed=1)), changes=[change])


test_found6_fuzz = cases.as_test(__name__)
