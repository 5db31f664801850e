#include "bytecode/python_api.h"

#include <string_view>

#include "base/error.h"
#include "bytecode/assembler.h"
#include "bytecode/code.h"
#include "bytecode/liveness.h"
#include "bytecode/verify.h"

namespace cdynamo {
namespace {

PyCodeObject* codeArgument(PyObject* object) {
  if (!PyCode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "a code object is needed, not %.200s", Py_TYPE(object)->tp_name);
    throw PythonError{};
  }
  return reinterpret_cast<PyCodeObject*>(object);
}

// The border: engine failures become Python errors.
template <typename Body>
PyObject* guarded(Body body) {
  try {
    return body().releaseObject();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

ObjectRef describe(const Code& code, InstrIndex i) {
  const Instr& instr = code.at(i);
  PyObject* object = instr.object != nullptr ? instr.object : Py_None;
  return checked(Py_BuildValue("(siOii(iiii)ii)", opName(instr.op), instr.arg, object, instr.target, instr.handler, instr.pos.line, instr.pos.endLine,
                               instr.pos.col, instr.pos.endCol, code.depthAt(i), static_cast<int>(instr.flags)));
}

ObjectRef listOf(Py_ssize_t count, auto&& item) {
  ObjectRef list = checked(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, item(i).release());
  return list;
}

PyObject* pyDecode(PyObject*, PyObject* argument) {
  return guarded([&] {
    std::shared_ptr<const Code> code = decodeShared(codeArgument(argument));
    ObjectRef instrs = listOf(code->size(), [&](Py_ssize_t i) { return describe(*code, static_cast<InstrIndex>(i)); });
    ObjectRef handlers = listOf(static_cast<Py_ssize_t>(code->handlers().size()), [&](Py_ssize_t i) {
      const Handler& h = code->handlers()[static_cast<size_t>(i)];
      return checked(Py_BuildValue("(iiiii)", h.start, h.end, h.target, h.depth, static_cast<int>(h.lasti)));
    });
    return checked(PyTuple_Pack(2, instrs.get(), handlers.get()));
  });
}

PyObject* pyDump(PyObject*, PyObject* argument) {
  return guarded([&] {
    std::string text = dump(*decodeShared(codeArgument(argument)));
    return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  });
}

PyObject* pyLiveNames(PyObject*, PyObject* arguments) {
  return guarded([&] {
    PyObject* object = nullptr;
    int index = 0;
    if (!PyArg_ParseTuple(arguments, "Oi", &object, &index)) throw PythonError{};
    std::shared_ptr<const Code> code = decodeShared(codeArgument(object));
    LiveSet live = liveAt(*code, index);
    ObjectRef names = checked(PyList_New(0));
    for (int slot = 0; slot < live.slotCount(); ++slot) {
      if (live.contains(slot)) checkedStatus(PyList_Append(names.get(), code->localName(slot)));
    }
    return names;
  });
}

PyObject* pyReassemble(PyObject*, PyObject* argument) {
  return guarded([&] {
    std::shared_ptr<const Code> code = decodeShared(codeArgument(argument));
    return assemble(CodeSpec::like(code->pyCode()), code->instrs(), code->handlers());
  });
}

PyObject* pyIndexOf(PyObject*, PyObject* arguments) {
  return guarded([&] {
    PyObject* object = nullptr;
    int offset = 0;
    if (!PyArg_ParseTuple(arguments, "Oi", &object, &offset)) throw PythonError{};
    return checked(PyLong_FromLong(decodeShared(codeArgument(object))->indexOf(ByteOffset{offset})));
  });
}

Op opNamed(const char* name) {
  for (int op = 0; op < kOpCount; ++op) {
    if (std::string_view(name) == opName(static_cast<Op>(op))) return static_cast<Op>(op);
  }
  PyErr_Format(PyExc_ValueError, "no op is called %s", name);
  throw PythonError{};
}

struct WrittenHandler {
  int start, end, target, depth, lasti;
};

std::vector<WrittenHandler> writtenHandlers(PyObject* list) {
  std::vector<WrittenHandler> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    WrittenHandler h{};
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "iiiip", &h.start, &h.end, &h.target, &h.depth, &h.lasti)) {
      throw PythonError{};
    }
    out.push_back(h);
  }
  return out;
}

PyObject* pyAssemble(PyObject*, PyObject* arguments) {
  return guarded([&] {
    PyObject* like = nullptr;
    PyObject* instrs = nullptr;
    PyObject* handlers = nullptr;
    if (!PyArg_ParseTuple(arguments, "OO!O!", &like, &PyList_Type, &instrs, &PyList_Type, &handlers)) throw PythonError{};
    Assembler assembler(CodeSpec::like(codeArgument(like)));
    assembler.setLine(codeArgument(like)->co_firstlineno);
    std::vector<WrittenHandler> regions = writtenHandlers(handlers);
    const Py_ssize_t count = PyList_GET_SIZE(instrs);
    std::vector<Label> labels = assembler.newLabels(static_cast<int>(count));
    auto labelOf = [&](int index) {
      CD_CHECK(index >= 0 && index < count, "a target is out of range");
      return labels[static_cast<size_t>(index)];
    };
    for (int i = 0; i < count; ++i) {
      for (const WrittenHandler& h : regions) {
        if (h.end == i) assembler.endHandler();
      }
      for (const WrittenHandler& h : regions) {
        if (h.start == i) assembler.beginHandler(labelOf(h.target), h.lasti != 0, h.depth);
      }
      const char* name = nullptr;
      int arg = 0;
      PyObject* object = nullptr;
      int target = -1;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(instrs, i), "siOi", &name, &arg, &object, &target)) throw PythonError{};
      assembler.bind(labelOf(i));
      Op op = opNamed(name);
      if (operandOf(op) == Operand::Jump) {
        assembler.emitJump(op, labelOf(target));
      } else {
        assembler.emit(op, arg, object == Py_None && operandOf(op) != Operand::Const ? nullptr : object);
      }
    }
    for (const WrittenHandler& h : regions) {
      if (h.end == count) assembler.endHandler();
    }
    return assembler.finish();
  });
}

Ref<PyCodeObject> continuationOf(const Code& code, InstrIndex index) {
  CD_CHECK(index >= 0 && index < code.size(), "no such instruction");
  LiveSet live = liveAt(code, index);
  CodeSpec spec = CodeSpec::like(code.pyCode());
  spec.localsplus.clear();
  spec.flags &= ~(CO_VARARGS | CO_VARKEYWORDS);
  spec.posOnlyCount = spec.kwOnlyCount = 0;
  std::vector<int> slots(static_cast<size_t>(code.localsplusCount()), -1);
  auto add = [&](auto&& wanted, auto&& adder) {
    for (int slot = 0; slot < code.localsplusCount(); ++slot) {
      if (wanted(slot)) slots[static_cast<size_t>(slot)] = adder(code.localName(slot));
    }
  };
  using Kind = Code::LocalKind;
  auto isLocal = [&](int slot) { return code.localKind(slot) == Kind::Local || code.localKind(slot) == Kind::ArgCell; };
  auto addLocal = [&](PyObject* name) { return spec.addLocal(name); };
  add([&](int slot) { return isLocal(slot) && live.contains(slot); }, addLocal);
  ObjectRef stackName = checked(PyUnicode_InternFromString("stack"));
  int stack = spec.addLocal(stackName.get());
  spec.argcount = stack + 1;
  add([&](int slot) { return isLocal(slot) && !live.contains(slot); }, addLocal);
  add([&](int slot) { return code.localKind(slot) == Kind::Cell; }, [&](PyObject* name) { return spec.addCell(name); });
  add([&](int slot) { return code.localKind(slot) == Kind::Free; }, [&](PyObject* name) { return spec.addFree(name); });
  for (int slot = 0; slot < code.localsplusCount(); ++slot) {
    if (code.localKind(slot) == Kind::ArgCell) spec.makeLocalACell(slots[static_cast<size_t>(slot)]);
  }
  Assembler assembler(std::move(spec));
  assembler.setLine(code.lineOf(index));
  assembler.prologue();
  for (int k = 0; k < code.depthAt(index); ++k) {
    assembler.loadFast(stack);
    assembler.loadConst(checked(PyLong_FromLong(k)).get());
    assembler.binarySubscr();
  }
  std::vector<Label> labels = assembler.newLabels(code.size());
  assembler.jump(labels[static_cast<size_t>(index)]);
  assembler.copyCode(code, labels, slots);
  return assembler.finish();
}

PyObject* pyContinuation(PyObject*, PyObject* arguments) {
  return guarded([&] {
    PyObject* object = nullptr;
    int index = 0;
    if (!PyArg_ParseTuple(arguments, "Oi", &object, &index)) throw PythonError{};
    return continuationOf(*decodeShared(codeArgument(object)), index);
  });
}

PyObject* pyVerify(PyObject*, PyObject* argument) {
  return guarded([&] {
    verifyCode(codeArgument(argument));
    return ObjectRef::share(Py_None);
  });
}

PyObject* pyClearDecodeCache(PyObject*, PyObject*) {
  return guarded([] {
    clearDecodeCache();
    return ObjectRef::share(Py_None);
  });
}

PyMethodDef kMethods[] = {
    {"decode", pyDecode, METH_O, "decode(code) -> (instrs, handlers) in the version-free form"},
    {"dump", pyDump, METH_O, "dump(code) -> text of the version-free form"},
    {"index_of", pyIndexOf, METH_VARARGS, "index_of(code, offset) -> instruction index"},
    {"live_names", pyLiveNames, METH_VARARGS, "live_names(code, index) -> names of the locals that are live there"},
    {"reassemble", pyReassemble, METH_O, "reassemble(code) -> equal code, by way of the version-free form"},
    {"assemble", pyAssemble, METH_VARARGS, "assemble(template, instrs, handlers) -> code"},
    {"continuation", pyContinuation, METH_VARARGS, "continuation(code, index) -> code that goes on there"},
    {"verify", pyVerify, METH_O, "verify(code): raises where the bytecode is inconsistent"},
    {"clear_decode_cache", pyClearDecodeCache, METH_NOARGS, "forget all decoded code"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void addBytecodeFunctions(PyObject* module) { checkedStatus(PyModule_AddFunctions(module, kMethods)); }

}  // namespace cdynamo
