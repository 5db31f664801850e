#include "base/error.h"

namespace cdynamo {

void engineFail(const char* file, int line, const char* what) {
  throw EngineError(std::string(what) + " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace cdynamo
