// What the front can set for all compiled functions.
#pragma once
#include "base/ref.h"

namespace cdynamo {

enum class Stance : uint8_t { Default, ForceEager, EagerOnRecompile, FailOnRecompile, EagerThenCompile, AotEagerThenCompile };

struct DispatchSettings {
  Stance stance = Stance::Default;
  // Captures per code and options for the same objects (see GuardProgram::isForSameObjects), and for all together.
  int recompileLimit = 8;
  int accumulatedLimit = 256;
  // A new capture whose guards do not hold, and engine failures, raise instead of running eagerly.
  bool strict = false;
  // The reference's decisions for breaks in loops, with and try: the frame runs eagerly.
  bool skipBlocks = false;
  // For tests of breaks: every capture breaks at its nth instruction. 0: it does not.
  int breakEvery = 0;
  // on_recompile(function, [why each entry missed]); on_limit(function, limit, reasons, options), once per code
  // (at every call while it raises); on_miss() before a recompile is considered, so that the front can refresh the settings; on_engine_error(
  // function, text). Null: nothing, a RuntimeWarning, a RuntimeWarning. What they raise fails the call.
  // other_backend(options, name): the same options with another backend; name None: the one that set_stance forces.
  ObjectRef otherBackend;
  bool forceBackend = false;
  bool onlyDiffering = false;  // of the guards, only those are run that tell the captures of a code object apart
  ObjectRef onMiss;
  ObjectRef onRecompile;
  ObjectRef onLimit;
  ObjectRef onEngineError;
};

DispatchSettings& dispatchSettings();

// Depth of "run eagerly" on this thread, besides captures.
int& eagerDepth();
// Depth of "use captures, make none" on this thread.
int& runOnlyDepth();

}  // namespace cdynamo
