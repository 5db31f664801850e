// CPython 3.11. Included by opcode_table.cpp alone.
//   ROW(opcode, Op, form, caches): the first row of an Op is the one that the assembler writes.
#define CD_OPCODE_ROWS(ROW)                                           \
  ROW(CACHE, Nop, Drop, 0)                                            \
  ROW(PRECALL, Nop, Drop, 1)                                          \
  ROW(EXTENDED_ARG, Nop, Drop, 0)                                     \
  ROW(PUSH_NULL, Nop, PushNull, 0)                                    \
  ROW(KW_NAMES, Nop, KwNames, 0)                                      \
  ROW(UNARY_POSITIVE, UnaryPositive, None, 0)                         \
  ROW(BINARY_SUBSCR, BinarySubscr, None, 4)                           \
  ROW(COMPARE_OP, CompareOp, Compare, 2)                              \
  ROW(PRINT_EXPR, PrintExpr, None, 0)                                 \
  ROW(LIST_TO_TUPLE, ListToTuple, None, 0)                            \
  ROW(IMPORT_STAR, ImportStar, None, 0)                               \
  ROW(ASYNC_GEN_WRAP, AsyncGenWrap, None, 0)                          \
  ROW(PREP_RERAISE_STAR, PrepReraiseStar, None, 0)                    \
  ROW(YIELD_VALUE, YieldValue, None, 0)                               \
  ROW(FOR_ITER, ForIter, ForIter, 0)                                  \
  ROW(SEND, Send, Send, 0)                                            \
  ROW(LOAD_FAST, LoadFast, Local, 0)                                  \
  ROW(LOAD_GLOBAL, LoadGlobal, LoadGlobal, 5)                         \
  ROW(LOAD_ATTR, LoadAttr, Name, 4)                                   \
  ROW(LOAD_METHOD, LoadMethod, LoadMethod, 10)                        \
  ROW(LOAD_CLASSDEREF, LoadClassDeref, Local, 0)                      \
  ROW(CALL, Call, Call, 4)                                            \
  ROW(JUMP_IF_TRUE_OR_POP, JumpIfTrueOrPop, JumpForward, 0)           \
  ROW(JUMP_IF_FALSE_OR_POP, JumpIfFalseOrPop, JumpForward, 0)         \
  ROW(POP_JUMP_FORWARD_IF_TRUE, PopJumpIfTrue, JumpForward, 0)        \
  ROW(POP_JUMP_FORWARD_IF_FALSE, PopJumpIfFalse, JumpForward, 0)      \
  ROW(POP_JUMP_FORWARD_IF_NONE, PopJumpIfNone, JumpForward, 0)        \
  ROW(POP_JUMP_FORWARD_IF_NOT_NONE, PopJumpIfNotNone, JumpForward, 0) \
  ROW(POP_JUMP_BACKWARD_IF_TRUE, PopJumpIfTrue, JumpBackward, 0)      \
  ROW(POP_JUMP_BACKWARD_IF_FALSE, PopJumpIfFalse, JumpBackward, 0)    \
  ROW(POP_JUMP_BACKWARD_IF_NONE, PopJumpIfNone, JumpBackward, 0)      \
  ROW(POP_JUMP_BACKWARD_IF_NOT_NONE, PopJumpIfNotNone, JumpBackward, 0)

#define CD_INTRINSIC1_ROWS(ROW)
#define CD_INTRINSIC2_ROWS(ROW)

namespace cdynamo {
inline constexpr Dialect kDialect = {
    .version = 311,
    .pushNull = PUSH_NULL,
    .swap = SWAP,
    .copy = COPY,
    .popTop = POP_TOP,
    .extendedArg = EXTENDED_ARG,
    .kwNames = KW_NAMES,
    .call = CALL,
    .callFunctionEx = CALL_FUNCTION_EX,
    .precall = PRECALL,
    .loadMethod = LOAD_METHOD,
    .endFor = -1,
    .loadSuperAttr = -1,
    .jumpBackwardNoInterrupt = JUMP_BACKWARD_NO_INTERRUPT,
    .loadFastUnchecked = -1,
    .loadAttrShifted = false,
    .sendKeepsReceiver = false,
    .yieldCountsHandlers = false,
    .compareShift = 0,
    .compareMask = {0, 0, 0, 0, 0, 0},
};
}  // namespace cdynamo
