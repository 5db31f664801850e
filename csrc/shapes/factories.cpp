#include "shapes/rules.h"
namespace cdynamo {
void addFactoryRules(RuleTable&) {}
}
