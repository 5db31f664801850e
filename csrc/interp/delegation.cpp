// Throwing into a generator that waits for another one.
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

// Null where there is none. CPython reports an error of close, and raises one of throw outside of the generator.
Value* readMethod(Trace& t, Value* receiver, const char* name) {
  try {
    return getAttrOrNull(t, receiver, t.keep(checked(PyUnicode_InternFromString(name))));
  } catch (Raised&) {
    unsupported(BreakReason::ForeignGenerator, std::string("an error while the attribute '") + name + "' of a delegate is read");
  }
}

}  // namespace

Signal throwToDelegate(Trace& t, FrameState& f, Value*& thrown) {
  const InstrIndex at = f.ip;
  if (at == 0 || f.code->at(at).op != Op::YieldValue || f.code->at(at - 1).op != Op::Send) return Signal::Running;
  Value* receiver = f.top();
  Value* result = nullptr;
  try {
    bool closing = isA(t, thrown, PyExc_GeneratorExit);
    if (receiver->kind != Kind::Generator && receiver->kind != Kind::Instance) return Signal::Running;
    if (closing && receiver->kind == Kind::Generator) {
      closeGenerator(t, as<GeneratorValue>(receiver));
      return Signal::Running;
    }
    Value* method = nullptr;
    if (receiver->kind == Kind::Instance) method = readMethod(t, receiver, closing ? "close" : "throw");
    if (!method && receiver->kind == Kind::Instance) return Signal::Running;
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
