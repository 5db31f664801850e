// What the name of an operation tells about it.
#pragma once
#include <string>

#include "base/ref.h"

namespace cdynamo {

// The name of the method, or of the function; empty where it has none.
std::string opName(PyObject* target, bool isMethod);

// In-place operations; and_, or_, ... of module operator are none.
bool givesSelf(const std::string& name);
// Operations whose result may share its operand's memory.
bool mayGiveView(const std::string& name);
// Operations whose kernels look at the data and refuse some: indices, labels, matrices that have no inverse, checks.
bool mayFailOnData(const std::string& name);
bool drawsRandomNumbers(const std::string& name);

}  // namespace cdynamo
