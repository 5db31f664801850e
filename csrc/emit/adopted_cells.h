// The cells of a frame that goes on in other code. The new function's closure holds them all, in the order of cellSlots(). Those that were
// the frame's own become its own again: in errors an unbound one is a local variable.
#pragma once
#include <utility>
#include <vector>

#include "bytecode/assembler.h"
#include "bytecode/code.h"

namespace cdynamo {

class AdoptedCells {
 public:
  // Adds the variables, behind all plain locals, and says in `slots` where each of the code's cells is.
  AdoptedCells(const Code& code, CodeSpec& spec, std::vector<int>& slots);
  // Code that comes behind the making of cells.
  void adopt(Assembler& a) const;

 private:
  std::vector<std::pair<int, int>> own_;  // slot, free variable that holds its cell
};

}  // namespace cdynamo
