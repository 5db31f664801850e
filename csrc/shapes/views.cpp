#include "shapes/rules.h"
namespace cdynamo {
void addViewRules(RuleTable&) {}
}
