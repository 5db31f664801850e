"""Tests of CPython whose outcome says nothing about a capture, each with the reason. A name ends in * where it stands for many."""

NOT_JUDGED: dict[str, str] = {
    "test.test_patma.TestTracing.*": "sets a trace function and expects a line event for each line: captured code runs no lines",
    "test.test_genexps.__test__.doctests": "compares the ids of tuples that have died: how CPython reuses their memory",
    "test.test_coroutines.OriginTrackingTest.test_origin_tracking": "compares the frames that made a coroutine, as the interpreter saw them",
    "test.test_coroutines.OriginTrackingTest.test_origin_tracking_warning": "compares the frames that made a coroutine, as the interpreter saw them",
    "test.test_raise.TestTracebackType.test_attrs": "compares the frame object of a traceback with sys._getframe()",
    "test.test_itertools.*_tuple_reuse": "counts how often CPython reuses the memory of a tuple that has died",
    "test.test_enumerate.*.test_tuple_reuse": "counts how often CPython reuses the memory of a tuple that has died",
    "test.test_enumerate.TestReversed.test_bug1229429": "compares sys.getrefcount before and after",
    "test.test_dict.DictTest.test_splittable_popitem": "compares sys.getsizeof of dicts: how CPython lays them out",
    "test.test_descr.SharedKeyTests.test_subclasses": "compares sys.getsizeof of dicts: how CPython lays them out",
    "test.test_descr.ClassPropertiesAndMethods.test_slots": "counts all objects of the process before and after",
    "test.test_weakref.ReferencesTestCase.test_callback_in_cycle_resurrection": "expects no garbage collection between two lines",
    "test.test_array.*.test_bug_782369": "compares sys.getrefcount before and after",
    "test.test_struct.StructTest.test__struct_reference_cycle_cleaned_up": "expects that nobody else holds the functions of _struct",
    "test.test_optparse.TestOptionParser.test_refleak": "compares sys.getrefcount before and after",
}
