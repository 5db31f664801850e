#include "shapes/rules.h"
namespace cdynamo {
void addIndexingRules(RuleTable&) {}
}
