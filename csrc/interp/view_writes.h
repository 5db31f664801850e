#pragma once
#include "values/trace.h"

namespace cdynamo {

// An in-place operation has made `self`, a view or the base of views, part of autograd's graph: so are its base and all views
// of that. False where this is not all that `after` changes, or where it is not known what the others become.
bool spreadGradient(Trace& t, TensorValue* self, const TensorMeta& after);

}  // namespace cdynamo
