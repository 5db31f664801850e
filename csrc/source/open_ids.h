// Objects that are others in each call: their id() is no constant of a capture.
#pragma once
#include <set>
#include <string>

#include "source/source.h"

namespace cdynamo {

// Under this name a cache remembers a source that a capture held to one object, and where a later call had another one.
inline std::string openIdName(const std::string& source) { return "id(" + source + ")"; }

inline bool isOpenId(const std::set<std::string>* openNames, const SourceTable& sources, const Source* source) {
  return source && openNames && openNames->count(openIdName(sources.name(source))) != 0;
}

}  // namespace cdynamo
