#include "shapes/rules.h"
namespace cdynamo {
void addJoiningRules(RuleTable&) {}
}
