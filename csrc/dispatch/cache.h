// The captures of one code object under one set of options, shared by all compiled functions that have both.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dispatch/capture_api.h"

namespace cdynamo {

// Where CPython would let the program call no deeper than this, it goes on alone.
constexpr int kCallsOfFront = 60;

struct CallOutcome {
  PyObject* value = nullptr;         // a new reference; null with a Python error set, or with none: to be made eagerly
  std::shared_ptr<Entry> suspended;  // not null: the capture ended in a break, and the value is the state of its frames
};

class CodeCache {
 public:
  CodeCache(PyObject* code, PyObject* options);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // Makes one on first use. Throws PythonError. A cache lives until its code object dies, reset(), or until nobody can ask
  // for it any more.
  static std::shared_ptr<CodeCache> find(PyObject* code, PyObject* options);
  // Empties every cache, also while calls are running (they keep the entry they run).
  static void resetAll();
  // For a compiled function that goes away, with its reference to the options. Where only caches hold them besides (those of
  // functions that eager code called among them), these go too, once some others have parted after them.
  static void leave(ObjectRef options);
  // Drops the caches of a code object that nobody can call any more, and the captures of what follows a break in it.
  static void forget(PyObject* code);
  // How often captures hold a code object that go where it is forgotten: tracebacks that they make name it.
  static std::unordered_map<PyCodeObject*, Py_ssize_t> ownCodes();
  // Drops every capture that can never be used again.
  static void purgeAll();
  static size_t count();

  // The call itself, up to its first break. `inputs` are bound slots, borrowed and maybe only from the function's defaults.
  // The frame hook is off meanwhile.
  CallOutcome call(const FrameInputs& inputs, int recompileLimit);
  // The captures of what follows a break in this code.
  std::shared_ptr<CodeCache> continuation(const std::shared_ptr<const ResumeChain>& chain);

  bool onlyEager() const { return entries_.empty() && skipped_; }
  // Borrowed, for comparison; null after the code object's death.
  PyObject* code() const { return codeKey_; }
  void codeDied() { codeKey_ = nullptr; }
  PyObject* options() const { return options_.get(); }
  const std::string& skipReason() const { return skipReason_; }
  const std::vector<std::shared_ptr<Entry>>& entries() const { return entries_; }
  void clear();

 private:
  CallOutcome miss(const FrameInputs& inputs, int recompileLimit);
  void overLimit(const FrameInputs& inputs, int limit, PyObject* reasons);
  CallOutcome install(std::unique_ptr<Entry> entry, const FrameInputs& inputs);
  // Calls look(object) for what the codes of its captures hold.
  template <typename Look>
  void forEachConstant(const Look& look) const;
  // Dicts that only these captures and their own functions hold: no function with such globals can be called any more.
  static std::vector<ObjectRef> deadGlobals(const std::vector<std::shared_ptr<CodeCache>>& caches);
  // Drops entries that can never be used again.
  void purge(const std::unordered_set<PyObject*>& deadGlobals = {});
  // Whether one more capture for such a call would be too many.
  bool isFull(const FrameInputs& inputs, int limit) const;
  ObjectRef missReasons(const FrameInputs& inputs) const;
  // canHold: by the captures that can ever be used again, or by the others.
  void noteChangedNumbers(const FrameInputs& inputs, bool canHold);

  PyObject* codeKey_;  // borrowed: the registry drops the cache when it dies
  ObjectRef options_;
  std::vector<std::shared_ptr<Entry>> entries_;  // the one used last first
  std::unordered_map<std::shared_ptr<const ResumeChain>, std::shared_ptr<CodeCache>> continuations_;
  std::string skipReason_;
  std::set<std::string> openNames_;  // of sources whose numbers changed from call to call
  std::set<std::string> differing_;  // names of sources that tell the captures apart, see GuardProgram::addDiffering
  uint64_t generation_ = 0;          // moves when the cache is cleared
  int wasted_ = 0;                   // how often in a row captures went that one call had used: the objects they are for died
  bool skipped_ = false;
  bool limitReported_ = false;
  bool capturing_ = false;
  bool calledBefore_ = false;
};

}  // namespace cdynamo
