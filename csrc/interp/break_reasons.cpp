#include "interp/break_reasons.h"

#include <cstring>

namespace cdynamo {

namespace {

struct ReasonText {
  const char* name;
  int number;
  const char* title;
  const char* explanation;
  const char* hints;  // one per line
  const char* example;
};
constexpr ReasonText kReasons[] = {
#define CD_BREAK(name, number, title, explanation, hints, example) {#name, number, title, explanation, hints, example},
#include "interp/break_reasons.def"
#undef CD_BREAK
};

const ReasonText& textOf(BreakReason reason) { return kReasons[static_cast<size_t>(reason)]; }

ObjectRef idOf(const ReasonText& text) { return checked(PyUnicode_FromFormat("CD%04d", text.number)); }

ObjectRef hintsOf(const ReasonText& text) {
  ObjectRef list = checked(PyList_New(0));
  for (const char* line = text.hints; line;) {
    const char* end = std::strchr(line, '\n');
    ObjectRef hint = checked(end ? PyUnicode_FromStringAndSize(line, end - line) : PyUnicode_FromString(line));
    checkedStatus(PyList_Append(list.get(), hint.get()));
    line = end ? end + 1 : nullptr;
  }
  return list;
}

PyObject* breakReasons(PyObject*, PyObject*) {
  try {
    ObjectRef rows = checked(PyList_New(0));
    for (const ReasonText& text : kReasons) {
      ObjectRef id = idOf(text), hints = hintsOf(text);
      ObjectRef row = checked(Py_BuildValue("{s:s,s:O,s:s,s:s,s:O,s:s}", "reason", text.name, "id", id.get(), "title", text.title, "explanation",
                                            text.explanation, "hints", hints.get(), "example", text.example));
      checkedStatus(PyList_Append(rows.get(), row.get()));
    }
    return rows.release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyMethodDef functions[] = {
    {"break_reasons", breakReasons, METH_NOARGS, "Every reason for which a capture may break, as a list of dicts."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const char* breakReasonName(BreakReason reason) { return textOf(reason).name; }

ObjectRef stackOf(const TracePlace* place) {
  ObjectRef list = checked(PyList_New(0));
  for (; place; place = place->caller) {
    auto* code = reinterpret_cast<PyCodeObject*>(place->code);
    ObjectRef row = checked(Py_BuildValue("(OiO)", code->co_filename, place->line, code->co_name));
    checkedStatus(PyList_Append(list.get(), row.get()));
  }
  checkedStatus(PyList_Reverse(list.get()));
  return list;
}

ObjectRef breakPayload(PyObject* code, BreakReason reason, const std::string& what, const TracePlace* place) {
  const ReasonText& text = textOf(reason);
  ObjectRef id = idOf(text), hints = hintsOf(text), stack = stackOf(place);
  ObjectRef context = checked(PyUnicode_DecodeUTF8(what.data(), static_cast<Py_ssize_t>(what.size()), "replace"));
  return checked(Py_BuildValue("{s:O,s:s,s:O,s:s,s:s,s:O,s:O,s:O}", "code", code, "reason", text.name, "id", id.get(), "title", text.title,
                               "explanation", text.explanation, "hints", hints.get(), "context", context.get(), "stack", stack.get()));
}

void addBreakFunctions(PyObject* module) { checkedStatus(PyModule_AddFunctions(module, functions)); }

}  // namespace cdynamo
