// Throwing into a generator that waits for another one.
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

bool isA(Trace& t, Value* exception, PyObject* type) { return PyType_IsSubtype(t.typeOf(exception), reinterpret_cast<PyTypeObject*>(type)) != 0; }

}  // namespace

Signal throwToDelegate(Trace& t, FrameState& f, Value*& thrown) {
  const InstrIndex at = f.ip;
  if (at == 0 || f.code->at(at).op != Op::YieldValue || f.code->at(at - 1).op != Op::Send) return Signal::Running;
  Value* receiver = f.top();
  Value* result = nullptr;
  try {
    bool closing = isA(t, thrown, PyExc_GeneratorExit);
    if (receiver->kind != Kind::Generator && receiver->kind != Kind::Instance) return Signal::Running;
    Value* method = getAttrOrNull(t, receiver, t.keep(checked(PyUnicode_InternFromString(closing ? "close" : "throw"))));
    if (!method) return Signal::Running;
    if (closing) {
      call(t, method, {});
      return Signal::Running;
    }
    if (receiver->kind == Kind::Generator) {
      auto* inner = as<GeneratorValue>(receiver);
      f.result = resumeGenerator(t, inner, nullptr, thrown);
      if (f.result) return Signal::Yielded;
      result = inner->frame->result ? inner->frame->result : t.none();
    } else {
      f.result = call1(t, method, thrown);
      return Signal::Yielded;
    }
  } catch (Raised& raised) {
    thrown = raised.exception;
    if (!isA(t, thrown, PyExc_StopIteration) || receiver->kind == Kind::Generator) return Signal::Running;
    result = getAttr(t, thrown, "value");
  }
  thrown = nullptr;
  f.push(result);
  f.nextIp = f.code->at(at - 1).target;
  return Signal::Running;
}

}  // namespace cdynamo
