"""ns per call of a compiled function with one tensor argument and a backend that does nothing."""

import timeit

import torch
from conftest import extension as C


def best(statement, scope, number=200000):
    return min(timeit.repeat(statement, globals=scope, number=number, repeat=7)) / number * 1e9


def main():
    x = torch.zeros(3)
    answers = {
        "direct": lambda f, values, o: dict(facts=[("tensor", ("local", 0), x)], wanted=(("local", 0),), graph=lambda a: (a,), output=0),
        "general": lambda f, values, o: dict(facts=[("tensor", ("local", 0), x)], wanted=(("local", 0),), graph_inputs=1, function=lambda a, b: a[0]),
    }
    for name, answer in answers.items():
        C._set_test_capture(answer)
        compiled = C.CompiledFunction(lambda a: a, object())
        assert compiled(x) is x
        print(f"{name}: {best('compiled(x)', dict(compiled=compiled, x=x)):.0f} ns per call")
    print(f"plain Python call: {best('f(x)', dict(f=lambda a: a, x=x)):.0f} ns")
    C._set_test_capture(None)


main()
