#include "dispatch/settings.h"

#include "dispatch/capture_api.h"

namespace cdynamo {

namespace {

CaptureHook theHook = nullptr;
thread_local int captureDepth = 0;
int captureCount = 0;  // of all threads, under the GIL
thread_local int eagerDepthHere = 0;
thread_local int runOnlyDepthHere = 0;

}  // namespace

void setCaptureHook(CaptureHook hook) { theHook = hook; }
CaptureHook captureHook() { return theHook; }

CaptureScope::CaptureScope() {
  captureDepth++;
  captureCount++;
}
CaptureScope::~CaptureScope() {
  captureDepth--;
  captureCount--;
}
bool CaptureScope::active() { return captureDepth > 0; }
bool CaptureScope::anywhere() { return captureCount > 0; }

int& eagerDepth() { return eagerDepthHere; }
int& runOnlyDepth() { return runOnlyDepthHere; }

DispatchSettings& dispatchSettings() {
  static DispatchSettings* settings = new DispatchSettings();
  return *settings;
}

}  // namespace cdynamo
