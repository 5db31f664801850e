#include "shapes/rules.h"
namespace cdynamo {
void addNNRules(RuleTable&) {}
}
