"""Functions of another module, with globals of their own."""

from harness import ext

SCALE = 3


def scaled_around_break(x):
    y = x * SCALE
    ext(y)
    return y + SCALE


def through(fn, x):
    y = x * SCALE
    return fn(y) + SCALE
