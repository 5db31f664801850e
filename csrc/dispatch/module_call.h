// cdynamo._C.CompiledModuleCall: what calling a compiled nn.Module does.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// CompiledModuleCall(module, forward, call)
//   forward  the compiled module.forward, used while nothing that nn.Module.__call__ would do besides is there
//   call     the compiled module.__call__, used otherwise: hooks on the module or in torch.nn.modules.module's registries, a
//            forward that was replaced on the instance or on the class, another __class__, other kinds of dicts
// Creates the type. A new reference; throws PythonError.
ObjectRef makeCompiledModuleCallType();

}  // namespace cdynamo
