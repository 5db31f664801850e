"""Random numbers: Python's generators and torch's. Values and states must be eager's after every call."""

import random

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- Python's random ---------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), ops=["item", "mul"])
def a_factor(x):
    return x * random.random()


@case(lambda: (t(3),), ops=["add"])
def numbers_returned(x):
    a, b = random.random(), random.randint(1, 6)
    return x + 1, a, b, [random.uniform(-1, 1), random.gauss(0, 1), random.gauss(0, 1), random.normalvariate(1, 2)]


@case(lambda: (t(3),))
def all_kinds_of_draws(x):
    return (
        x + random.randrange(10),
        random.randrange(3, 20, 4),
        random.getrandbits(20),
        random.choice([1, 2, 3]),
        random.choice((0.5, 1.5)),
        random.choice(range(5)),
        random.triangular(0, 1),
        random.expovariate(2),
        random.betavariate(2, 3),
        random.gammavariate(1.0, 2.0),
        random.lognormvariate(0, 1),
        random.vonmisesvariate(0, 1),
        random.paretovariate(3),
        random.weibullvariate(1, 2),
        random.uniform(a=1, b=2),
    )


@case(lambda: (t(3),))
def computed_with(x):
    a = random.random() * 2 + 1
    n = random.randint(1, 5) * 10
    return x * a + n, a, n, n - 1, a > 2.0, n == 30


@case(lambda: (t(3),), ops=["item", "mul", "item", "add"])
def in_a_loop(x):
    for _ in range(2):
        x = (x * random.random()) if _ == 0 else x + random.random()
    return x


@case(lambda: (t(3),))
def seeded_inside(x):
    random.seed(3)
    a = random.random()
    random.seed("text")
    return x * a, random.random()


@case(lambda: (t(3),))
def in_a_callee(x):
    def drop(v, p):
        return v * random.uniform(0, p)

    return drop(x, 1), drop(x, 2)


@case(lambda: (t(3), random.Random(5)))
def a_generator_as_argument(x, rng):
    return x * rng.random(), rng.randint(0, 9), rng.getstate() is None if False else 0


@scenario(after_change=(0,))
def a_generator_of_the_world():
    rngs = [random.Random(5)]

    def f(x):
        return x * rngs[0].random(), rngs[0].randint(0, 99)

    return Setup(f, lambda: (t(3),), watch=lambda: rngs[0].getstate(), changes=[lambda: rngs[0].seed(9)])


@scenario()
def another_generator_later():
    rngs = [random.Random(5)]

    def change():
        rngs[0] = random.Random(6)

    return Setup(lambda x: x * rngs[0].random(), lambda: (t(3),), watch=lambda: rngs[0].getstate(), changes=[change])


@scenario()
def bounds_that_change():
    bounds = [1, 5]

    def f(x):
        return x + random.randint(*bounds), random.choice(bounds)

    def change():
        bounds[:] = [10, 20, 30][:2]

    return Setup(f, lambda: (t(3),), changes=[change])


@case(lambda: (t(3), [1, 2]))
def a_list_changed_after_the_draw(x, items):
    a = random.choice(items)
    items.append(3)
    return x + a, a, items


@case(lambda: (t(3),))
def shown(x):
    n = random.randint(1, 6)
    print("drew", n)
    return x + n


@case(lambda: (t(3),), skip="DataDependentBranch")
def a_branch(x):
    if random.random() < 0.5:
        return x + 1
    return x - 1


@case(lambda: (t(3),), skip="DataDependentBranch")
def draws_around_a_branch(x):
    a = random.random()
    if random.random() < 0.9:
        x = x * random.random()
    return x * a, random.random()


@case(lambda: (t(3),), skip="*")
def states(x):
    state = random.getstate()
    a = random.random()
    y = x * a
    random.setstate(state)
    return y, random.random() == a


@case(lambda: (t(3),), skip="*")
def lists_of_draws(x):
    items = [1, 2, 3, 4, 5]
    random.shuffle(items)
    return x * items[0], items, random.sample(items, 2), random.choices(items, k=3), random.choice("abc")


@case(lambda: (t(3),), skip="RandomCall")
def draws_that_raise(x):
    try:
        random.randint(3, 1)
    except ValueError as error:
        return x + 1, str(error)


@case(lambda: (t(3),), skip="*")
def a_generator_made_inside(x):
    rng = random.Random(4)
    return x * rng.random()


class Loaded(random.Random):
    def random(self):
        return super().random() / 2


@case(lambda: (t(3), Loaded(3)), skip="*")
def a_subclass(x, rng):
    return x * rng.random(), rng.uniform(0, 1), rng.randint(0, 4)


@scenario(skip="*")
def a_patched_draw():
    before = random.random
    random.random = lambda: 0.25

    def cleanup():
        random.random = before

    def f(x):
        torch._dynamo.graph_break()
        return x * random.random()

    return Setup(f, lambda: (t(3),), cleanup=cleanup)


@scenario()
def patched_between_calls():
    before = random.random

    def change():
        random.random = lambda: 0.25

    def cleanup():
        random.random = before

    return Setup(lambda x: x * random.random(), lambda: (t(3),), changes=[change, cleanup], cleanup=cleanup)


# ---- torch's -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def seeded_torch(x):
    torch.manual_seed(3)
    return x + torch.rand(3), torch.rand(2)


@case(lambda: (t(3),), skip="*")
def torch_states(x):
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return x + a, torch.rand(3), torch.initial_seed()


@scenario(after_change=(0, None))
def a_torch_generator():
    gs = [torch.Generator().manual_seed(3)]

    def f(x):
        return x + torch.rand(3, generator=gs[0]), torch.randn(2, generator=gs[0])

    def change():
        gs[0] = torch.Generator().manual_seed(5)

    return Setup(f, lambda: (t(3),), watch=lambda: gs[0].get_state(), changes=[lambda: gs[0].manual_seed(9), change])


@scenario(ops=["rand", "add"])
def a_torch_generator_seeded_inside():
    g = torch.Generator().manual_seed(3)

    def f(x):
        same = g.manual_seed(4) is g
        return x + torch.rand(3, generator=g), same

    return Setup(f, lambda: (t(3),), watch=lambda: g.get_state())


@case(lambda: (t(3),), skip="RandomCall")
def seeded_after_an_operation(x):
    y = torch.rand(3)
    torch.manual_seed(3)
    return x + y, torch.rand(2)


@scenario()
def a_seed_that_changes():
    seeds = [3]

    def change():
        seeds[0] = 4

    def f(x):
        torch.manual_seed(seeds[0])
        return x + torch.rand(3)

    return Setup(f, lambda: (t(3),), changes=[change])


@case(lambda: (t(3),), skip="*")
def a_forked_generator(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        y = torch.rand(3)
    return x + y, torch.rand(2)


@case(lambda: (t(3),), skip="*")
def a_generator_in_the_function(x):
    g = torch.Generator()
    g.manual_seed(4)
    return x + torch.rand(3, generator=g), g.initial_seed()


class Nothing:
    def __call__(self, *args):
        return 0.0


@case(lambda: (t(3),), skip="RandomCall")
def a_method_of_its_class_is_another_one_for_a_while(x):
    before = random.Random.__dict__["gammavariate"]
    random.Random.gammavariate = Nothing()
    try:
        return x + random.betavariate(2.0, 3.0)  # which asks for that method
    finally:
        random.Random.gammavariate = before


test = cases.as_test(__name__)
