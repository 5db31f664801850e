// Objects that C code of the library makes, of which cdynamo/_stand_ins.py has a model; what typing asks its callers.
#include "base/lookup.h"
#include "base/own_library.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"

namespace cdynamo {

namespace {

// cdynamo._stand_ins.native(function, *args, **kwargs)
Value* nativeCall(Trace& t, CallArgs& a) {
  if (a.args.empty() || !isReal(a.args[0])) throw WrongArguments{};
  PyObject* function = realObject(a.args[0]);
  CallArgs given{{a.args.begin() + 1, a.args.end()}, a.kwargs};
  if (Value* v = callNative(t, function, given)) return v;
  unsupported(BreakReason::UnknownFunction, "a call of C code with arguments that are no constants");
}

// typing._caller(depth=1, default="__main__"): the name of the module whose code called the caller.
Value* typingCaller(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 2);
  long long depth = a.args.empty() ? 1 : indexArgument(t, a.args[0]);
  const FrameState* f = callerFrame(t, depth);
  PyObject* module = f ? PyDict_GetItemString(f->globals, "__name__") : nullptr;
  if (!module) unsupported(BreakReason::UnknownFunction, "asking for the module of the caller of the compiled function");
  return t.realShared(module);
}

Value* namedTupleWithHints(Trace& t, CallArgs& a) {
  static PyObject* factory = importedObject("cdynamo._library", "named_tuple_with_hints");
  return makeByFactory(t, factory, a);
}

}  // namespace

Value* callOfStandIn(Trace& t, PyObject* descriptor, const CallArgs& args) {
  PyTypeObject* kind = Py_TYPE(descriptor);
  if ((kind != &PyMethodDescr_Type && kind != &PyWrapperDescr_Type) || args.args.empty() || args.args[0]->kind != Kind::Instance) return nullptr;
  auto* d = reinterpret_cast<PyDescrObject*>(descriptor);
  Value* self = args.args[0];
  if (!isOwnLibrary(typeDict(t.typeOf(self)), "__module__") || realObject(typeValue(t, self)) != reinterpret_cast<PyObject*>(d->d_type))
    return nullptr;
  Value* method = getAttrOrNull(t, self, d->d_name);
  if (!method) unsupported(BreakReason::UnknownFunction, "a method of " + describe(self) + " that is not modelled");
  return call(t, method, {{args.args.begin() + 1, args.args.end()}, args.kwargs});
}

void addStandIns(BuiltinTable& table) {
  table.add("cdynamo._stand_ins.native", nativeCall);
  table.add("typing._caller", typingCaller);
  table.addPolyfill("types.MappingProxyType", "mappingproxy");
  table.addPolyfill("builtins.bytearray", "bytearray");
  table.addPolyfill("builtins.bytearray.fromhex", "bytearray_fromhex");
  table.addPolyfill("_thread.allocate_lock", "lock");
  table.addPolyfill("_thread.RLock", "RLock");
  for (const char* name : {"openssl_md5", "openssl_sha1", "openssl_sha224", "openssl_sha256", "openssl_sha384", "openssl_sha512"})
    table.addPolyfill((std::string("_hashlib.") + name).c_str(), name);
  table.addPolyfill("re.Pattern.finditer", "pattern_finditer");
  table.addPolyfill("re.Pattern.sub", "pattern_sub");
  table.addPolyfill("re.Pattern.subn", "pattern_subn");
  table.addPolyfill("_string.formatter_parser", "formatter_parser");
  table.addPolyfill("_string.formatter_field_name_split", "formatter_field_name_split");
  table.addPolyfill("os.fspath", "fspath");
  table.addPolyfill("operator.length_hint", "length_hint");
  table.addPolyfill("builtins.ascii", "ascii");
  table.addPolyfill("logging.getLogger", "get_logger");
  table.addPolyfill("inspect.unwrap", "unwrap");
  table.addPolyfill("typing._make_nmtuple", "make_nmtuple");
  table.add("cdynamo._library.named_tuple_with_hints", namedTupleWithHints);
  for (const char* pure : {"struct.Struct", "zlib.crc32", "zlib.adler32", "zlib.compress", "zlib.decompress", "_datetime.date.fromisoformat",
                           "_datetime.datetime.fromisoformat", "_datetime.time.fromisoformat", "_datetime.date.fromordinal",
                           "_datetime.datetime.combine", "_datetime.date.fromisocalendar"})
    table.addPure(pure);
}

}  // namespace cdynamo
