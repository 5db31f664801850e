// A program as plain Python data, and back. One node is one tuple:
//
//   (op, target, args, kwargs, name, result, stack, source)
//
//   op      "placeholder", "call_function", "call_method" or "get_attr"
//   target  callable; str for call_method, get_attr, placeholder
//   args    tuple, kwargs dict: operands; a node is a NodeIndex (a subclass of int), containers are real ones.
//           get_attr has one argument, the object itself.
//   name    the user's variable, or ""
//   result  None, or ("tensor", dtype number, (device type number, index), sizes, strides, storage offset, requires_grad,
//           is_leaf, layout number), ("tuple", items), ("list", items), ("named", class, items), ("constant", object)
//   stack   tuple of (file, line, function, module path or None, module type or None), the outermost frame first
//   source  of a placeholder: text such as L['x'], else None
#pragma once
#include <memory>

#include "graph/program.h"

namespace cdynamo {

// The type of node references in descriptions: class NodeIndex(int). Made once, borrowed. Throws PythonError.
PyObject* nodeIndexType();

// List of all nodes' descriptions. Without operands, args and kwargs are None. Throws PythonError.
ObjectRef describeNodes(const Program& program, bool withOperands);

// (args, kwargs) of one node with nodes replaced by the items of list `table` at their ids. Throws PythonError.
ObjectRef operandsOf(const Program& program, const Node& node, PyObject* table);

// The inverse of describeNodes, with the ids of the output nodes. Throws PythonError with a TypeError, ValueError or
// IndexError set where the description is not one.
std::unique_ptr<Program> programFrom(PyObject* nodes, PyObject* outputs);

}  // namespace cdynamo
