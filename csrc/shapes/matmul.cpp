#include "shapes/rules.h"
namespace cdynamo {
void addMatmulRules(RuleTable&) {}
}
