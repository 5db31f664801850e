#include "dispatch/frame_hook.h"

#include "base/error.h"
#include "base/stack_room.h"
#include "cpython/frame_hook.h"
#include "dispatch/driver.h"
#include "dispatch/frame_filter.h"
#include "dispatch/settings.h"

namespace cdynamo {

namespace {

// What is known of a code object, kept in it.
struct CodeNote {
  bool never = false;
  GlobalsMemo globals;
  // The cache that was used last. While it lives it holds its options, so that the address means them.
  PyObject* options = nullptr;
  std::weak_ptr<CodeCache> cache;
};

void dropNote(void* note) { delete static_cast<CodeNote*>(note); }

// Null where CPython has no more room for notes: then nothing is offered.
CodeNote* noteOf(PyCodeObject* code) {
  static const Py_ssize_t slot = requestCodeSlot(dropNote);
  if (slot < 0) return nullptr;
  if (auto* known = static_cast<CodeNote*>(codeSlot(code, slot))) return known;
  auto made = std::make_unique<CodeNote>();
  made->never = isNeverCaptured(code);
  checkedStatus(setCodeSlot(code, slot, made.get()));
  return made.release();
}

thread_local FrameHookState here;
int threadsOn = 0;

PyObject* evaluate(const StartingFrame* frame) noexcept;

FrameHookState switchTo(FrameHookState next) {
  FrameHookState before = std::exchange(here, next);
  if (next.options && !before.options) {
    if (threadsOn++ == 0) installFrameHook(evaluate);
  } else if (!next.options && before.options) {
    if (--threadsOn == 0) removeFrameHook();
  }
  return before;
}

FrameInputs inputsOf(const StartingFrame& frame) {
  PyCodeObject* code = frame.code;
  int parameters = code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) + ((code->co_flags & CO_VARKEYWORDS) != 0);
  return {frame.locals, parameters, frame.function};
}

std::shared_ptr<CodeCache> cacheFor(CodeNote& note, const FrameInputs& inputs, PyCodeObject* code) {
  std::shared_ptr<CodeCache> cache = note.options == here.options ? note.cache.lock() : nullptr;
  if (cache && cache->onlyEager()) return nullptr;
  bool captured = cache && !cache->entries().empty();
  if (!captured && !mayUseTensors(inputs, note.globals)) return nullptr;
  if (!cache) {
    cache = CodeCache::find(reinterpret_cast<PyObject*>(code), here.options);
    note.options = here.options;
    note.cache = cache;
  }
  return cache;
}

struct Offer {
  enum Kind : uint8_t { Run, RunWithoutHook, Done } kind = Run;
  PyObject* result = nullptr;  // Done: a new reference, or null with an error set
};

Offer offerFrame(const StartingFrame& frame) {
  if (here.eagerCode == reinterpret_cast<PyObject*>(frame.code)) {
    here.eagerCode = nullptr;
    return {};
  }
  DisableMark mark = disableMark(frame.function);
  if (mark == DisableMark::AndBelow) return {Offer::RunWithoutHook};
  CodeNote* note = noteOf(frame.code);
  if (note == nullptr || note->never || mark != DisableMark::None) return {};
  if (eagerDepth() > 0 || CaptureScope::active() || dispatchSettings().stance == Stance::ForceEager || callsLeft() < kCallsOfFront) return {};
  FrameInputs inputs = inputsOf(frame);
  std::shared_ptr<CodeCache> cache = cacheFor(*note, inputs, frame.code);
  if (!cache) return {};
  PyObject* result = callToEnd(cache, inputs, here.recompileLimit);
  return {result || PyErr_Occurred() ? Offer::Done : Offer::Run, result};
}

// Apart from evaluate(), so that its locals are not on the stack of every frame that CPython runs.
[[gnu::noinline]] Offer tryOffer(const StartingFrame& frame) noexcept {
  try {
    return offerFrame(frame);
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "cdynamo: error without an exception set");
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_SystemError, "cdynamo: %s", error.what());
  }
  return {Offer::Done};
}

// With a hook, each Python call is one more level of C; without, CPython needs none. So the hook goes off where C cannot go much
// deeper. Where another thread has it on, the end of the stack is as deep as it gets.
[[gnu::noinline]] PyObject* evaluateAtStackEnd(const StartingFrame* frame) noexcept {
  FrameHookPause pause;
  if (!frameHookInstalled() || !stackIsNearlyFull()) return runFrame(frame);
  PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
  return finishFrame(frame, nullptr);
}

[[gnu::noinline]] PyObject* evaluateWithoutHook(const StartingFrame* frame) noexcept {
  FrameHookPause pause;
  return runFrame(frame);
}

PyObject* evaluate(const StartingFrame* frame) noexcept {
  if (stackIsNearlyFull() || callsAreNearlyRefused(frame)) [[unlikely]]
    return evaluateAtStackEnd(frame);
  if (here.options == nullptr) return runFrame(frame);
  Offer offer = tryOffer(*frame);
  if (offer.kind == Offer::Run) return runFrame(frame);
  return offer.kind == Offer::Done ? finishFrame(frame, offer.result) : evaluateWithoutHook(frame);
}

}  // namespace

FrameHookScope::FrameHookScope(PyObject* options, int recompileLimit, PyObject* eagerCode)
    : options_(ObjectRef::share(options)), before_(switchTo({options, recompileLimit, eagerCode})) {}
FrameHookScope::~FrameHookScope() { switchTo(before_); }

bool frameHookIsOn() { return here.options != nullptr; }

FrameHookPause::FrameHookPause() : before_(here.options ? switchTo({}) : FrameHookState{}) {}
FrameHookPause::~FrameHookPause() {
  if (before_.options) switchTo(before_);
}

void skipCode(PyObject* code) {
  CodeNote* note = noteOf(reinterpret_cast<PyCodeObject*>(code));
  if (note) note->never = true;
}

}  // namespace cdynamo
