"""cpython/compat.h: the same answers on every Python."""

import types


class Plain:
    pass


class Slots:
    __slots__ = ("a",)


class Text(str):
    pass


class Number(int):  # a variable-sized base: the dict's place is counted from the end
    pass


def test_dict_version(rooms):
    d = {"a": 1}
    first = rooms.dict_version(d)
    assert rooms.dict_version(d) == first
    d["a"] = 2
    second = rooms.dict_version(d)
    assert second != first
    del d["a"]
    assert rooms.dict_version(d) not in (first, second)


def test_type_version(rooms):
    class Base:
        pass

    class Derived(Base):
        pass

    first = rooms.type_version(Derived)
    assert first != 0 and rooms.type_version(Derived) == first == rooms.peek_type_version(Derived)
    Base.method = lambda self: 1
    assert rooms.peek_type_version(Derived) != first
    assert rooms.type_version(Derived) not in (0, first)
    assert rooms.type_version(int) != 0


def test_type_lookup(rooms):
    assert rooms.type_lookup(Text, "upper") is str.__dict__["upper"]
    assert rooms.type_lookup(Text, "no such name") is None


def test_instance_dict(rooms):
    plain = Plain()
    plain.a = 1
    assert rooms.instance_dict(plain) is plain.__dict__
    for made in (Text("x"), Number(7), Number(1 << 100), types.ModuleType("m"), lambda: 0, ValueError()):
        made.attribute = 5
        assert rooms.instance_dict(made)["attribute"] == 5
        assert rooms.peek_instance_dict(made) is rooms.instance_dict(made) is made.__dict__
    assert rooms.instance_dict(Slots()) is None and rooms.instance_dict(3) is None
    assert rooms.instance_dict(lambda: 0) == {}
    assert rooms.instance_dict(Plain)["__module__"] == __name__
    assert "bit_length" in rooms.instance_dict(int)


def test_peek_makes_nothing(rooms):
    plain = Plain()
    plain.a = 1
    peeked = rooms.peek_instance_dict(plain)
    assert peeked is None or peeked is plain.__dict__
    assert rooms.peek_instance_dict(lambda: 0) is None
    made = plain.__dict__
    assert rooms.peek_instance_dict(plain) is made
