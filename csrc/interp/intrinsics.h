// Known pieces of library code that the interpreter answers in C++ instead of tracing, with the same result and guards.
#pragma once
#include "interp/frame.h"
#include "interp/protocol.h"

namespace cdynamo {

// A value reached by identity: pinned by a fact that was recorded already.
Value* pinnedValue(Trace& t, PyObject* object);

// torch.nn.Module.__getattr__: looks in _parameters, _buffers, _modules. `known`: hook is that function; null then means absent.
Value* moduleGetAttr(Trace& t, PyObject* hook, InstanceValue* module, PyObject* name, bool& known);

// What torch.nn.Module.__call__ of a module without hooks comes to: its forward. Null where that does not apply.
Value* moduleForward(Trace& t, InstanceValue* module);

// Descriptors implemented in C that have no type of their own in the C API (named tuple fields,
// functools.lru_cache); null where unknown.
Value* bindKnownDescriptor(Trace& t, PyObject* descriptor, Value* instance);

// What getattr raises where there is no such attribute.
[[noreturn]] void attributeError(Trace& t, Value* object, PyObject* name);

// A call of a function that is known by its code (functools.singledispatch's dispatch, reprlib.recursive_repr's wrapper); null for all
// others.
Value* callKnownCode(Trace& t, PyObject* code, Value* closure, CallArgs& args);

// A C object whose attributes are fixed data and may be read as constants (torch.finfo, dtype, device, inspect-like objects).
bool isOpaqueReadable(PyObject* object);

// typing.List[int], list[T], collections.abc.Callable[[T], T]: made by their own code, which only looks at types. Null for all else.
Value* genericAlias(Trace& t, Value* container, Value* key);

// torch._dynamo.config and other modules of settings: their values are guarded, and changed for real while tracing.
bool isConfigModule(PyObject* module);
Value* configAttr(Trace& t, PyObject* module, PyObject* name);  // null: absent
void setConfigAttr(Trace& t, PyObject* module, PyObject* name, Value* value);

void setTensorAttr(Trace& t, TensorValue* tensor, PyObject* name, Value* value);

// What happens to an exception when it is raised: the one that is being handled becomes its context.
void linkContext(Trace& t, Value* exception);

// Breaks where a classmethod is around another descriptor, which CPython binds in its turn.
void checkClassMethod(Trace& t, Value* function);

// The next item of an iterator that existed before the trace (IteratorValue::Existing); null: exhausted.
Value* nextOfExisting(Trace& t, IteratorValue* it);
// An existing zip, map, ... is from now on what the trace would have made of its parts.
void openExisting(Trace& t, IteratorValue* it);
// Whether code of the generator runs when it is dropped where it stands.
bool mustBeClosed(GeneratorValue* g);
// A coroutine made by the trace that has not begun: CPython warns where it is dropped.
bool isNeverAwaited(GeneratorValue* g);
// Breaks where an existing generator may run code when the program lets go of it.
void checkDropped(Trace& t, Value* v);
// A frame (null: none of the trace's) has let go of v: a generator that nothing holds any more is closed.
void dropped(Trace& t, Value* v, const FrameState* dyingFrame = nullptr);
// generator.close()
void closeGenerator(Trace& t, GeneratorValue* g);
// The frame of a generator; of one that existed before, read where it stands.
FrameState& frameOf(Trace& t, GeneratorValue* g);
// StopIteration with a generator's result (null: None).
Value* stopIterationWith(Trace& t, Value* result);
// The number of the next item of an enumerate that existed before.
Value* numberOfExisting(Trace& t, IteratorValue* enumerate);
// What existing iterators go over is not among what was written to: as it is now, so in every call.
void guardExistingIterators(Trace& t);
// As Py_EnterRecursiveCall: raises RecursionError as CPython's own recursion in C does.
struct RecursiveCall {
  RecursiveCall(Trace& t, const char* where) {
    if (Py_EnterRecursiveCall(where) != 0) raiseCurrent(t);
  }
  ~RecursiveCall() { Py_LeaveRecursiveCall(); }
  RecursiveCall(const RecursiveCall&) = delete;
};

// An exception whose cause and context is another one; the second raises it.
Value* causedBy(Trace& t, PyObject* type, const std::string& message, Value* cause);
[[noreturn]] void raiseFrom(Trace& t, PyObject* type, const std::string& message, Value* cause);

// For a generator that waits in yield from or await: hands what is thrown at it to the one it waits for. Yielded: f.result is what
// that gave. Running: the frame goes on; with `thrown` raised in it, where that is not null.
Signal throwToDelegate(Trace& t, FrameState& f, Value*& thrown);

// What BaseExceptionGroup.__new__ checks of its arguments, and the class that it makes an instance of.
PyTypeObject* groupClass(Trace& t, PyTypeObject* type, const CallArgs& args);

// What the setters of BaseException's parts refuse.
void checkExceptionPart(Trace& t, const std::string& name, Value* value);
// A field that `holder`, a C type, adds to exceptions, of one that the trace made and nobody has set; null: holder is no C type.
Value* exceptionField(Trace& t, InstanceValue* exception, PyTypeObject* holder, const std::string& name);
// An AttributeError that leaves a read of object.name says which that was, where it says nothing else.
void noteAttribute(Trace& t, Value* error, Value* object, PyObject* name);

// The type of the generator that a new frame is the body of. Polyfills stand for what the methods of async generators give.
PyTypeObject* generatorType(const FrameState& f);
// Answers cdynamo.polyfills.async_generator_resume.
Value* resumeAsyncGenerator(Trace& t, CallArgs& a);
Value* builtinAnext(Trace& t, CallArgs& a);

// The next item of one of itertools' iterators; null: exhausted.
Value* nextOfItertool(Trace& t, IteratorValue* it);

}  // namespace cdynamo
