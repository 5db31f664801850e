// CPython 3.12. Included by opcode_table.cpp alone.
//   ROW(opcode, Op, form, caches): the first row of an Op is the one that the assembler writes.
#define CD_OPCODE_ROWS(ROW)                                      \
  ROW(CACHE, Nop, Drop, 0)                                       \
  ROW(EXTENDED_ARG, Nop, Drop, 0)                                \
  ROW(PUSH_NULL, Nop, PushNull, 0)                               \
  ROW(KW_NAMES, Nop, KwNames, 0)                                 \
  ROW(END_FOR, Nop, EndFor, 0)                                   \
  ROW(END_SEND, EndSend, None, 0)                                \
  ROW(CLEANUP_THROW, CleanupThrow, None, 0)                      \
  ROW(BINARY_SUBSCR, BinarySubscr, None, 1)                      \
  ROW(BINARY_SLICE, BinarySubscr, BinarySlice, 0)                \
  ROW(STORE_SLICE, StoreSubscr, StoreSlice, 0)                   \
  ROW(RETURN_CONST, ReturnValue, ReturnConst, 0)                 \
  ROW(COMPARE_OP, CompareOp, Compare, 1)                         \
  ROW(YIELD_VALUE, YieldValue, Number, 0)                        \
  ROW(FOR_ITER, ForIter, ForIter, 1)                             \
  ROW(SEND, Send, Send, 1)                                       \
  ROW(LOAD_FAST_CHECK, LoadFast, Local, 0)                       \
  ROW(LOAD_FAST, LoadFast, Local, 0)                             \
  ROW(LOAD_FAST_AND_CLEAR, LoadFastAndClear, Local, 0)           \
  ROW(LOAD_LOCALS, LoadLocals, None, 0)                          \
  ROW(LOAD_FROM_DICT_OR_GLOBALS, LoadFromDictOrGlobals, Name, 0) \
  ROW(LOAD_FROM_DICT_OR_DEREF, LoadFromDictOrDeref, Local, 0)    \
  ROW(LOAD_GLOBAL, LoadGlobal, LoadGlobal, 4)                    \
  ROW(LOAD_ATTR, LoadAttr, LoadAttrOrMethod, 9)                  \
  ROW(LOAD_SUPER_ATTR, LoadAttr, LoadSuperAttr, 1)               \
  ROW(CALL, Call, Call, 3)                                       \
  ROW(CALL_INTRINSIC_1, Nop, Intrinsic1, 0)                      \
  ROW(CALL_INTRINSIC_2, Nop, Intrinsic2, 0)                      \
  ROW(POP_JUMP_IF_TRUE, PopJumpIfTrue, JumpForward, 0)           \
  ROW(POP_JUMP_IF_FALSE, PopJumpIfFalse, JumpForward, 0)         \
  ROW(POP_JUMP_IF_NONE, PopJumpIfNone, JumpForward, 0)           \
  ROW(POP_JUMP_IF_NOT_NONE, PopJumpIfNotNone, JumpForward, 0)

//   ROW(number, Op, popsResult)
#define CD_INTRINSIC1_ROWS(ROW)     \
  ROW(1, PrintExpr, true)           \
  ROW(2, ImportStar, true)          \
  ROW(3, StopIterationError, false) \
  ROW(4, AsyncGenWrap, false)       \
  ROW(5, UnaryPositive, false)      \
  ROW(6, ListToTuple, false)        \
  ROW(7, TypeVar, false)            \
  ROW(8, ParamSpec, false)          \
  ROW(9, TypeVarTuple, false)       \
  ROW(10, SubscriptGeneric, false)  \
  ROW(11, TypeAlias, false)
#define CD_INTRINSIC2_ROWS(ROW)         \
  ROW(1, PrepReraiseStar, false)        \
  ROW(2, TypeVarWithBound, false)       \
  ROW(3, TypeVarWithConstraints, false) \
  ROW(4, SetFunctionTypeParams, false)

namespace cdynamo {
inline constexpr Dialect kDialect = {
    .version = 312,
    .pushNull = PUSH_NULL,
    .swap = SWAP,
    .copy = COPY,
    .popTop = POP_TOP,
    .extendedArg = EXTENDED_ARG,
    .kwNames = KW_NAMES,
    .call = CALL,
    .callFunctionEx = CALL_FUNCTION_EX,
    .precall = -1,
    .loadMethod = -1,
    .endFor = END_FOR,
    .loadSuperAttr = LOAD_SUPER_ATTR,
    .jumpBackwardNoInterrupt = JUMP_BACKWARD_NO_INTERRUPT,
    .loadFastUnchecked = LOAD_FAST,
    .loadAttrShifted = true,
    .sendKeepsReceiver = true,
    .yieldCountsHandlers = true,
    .compareShift = 4,
    // unordered 1, less 2, greater 4, equal 8
    .compareMask = {2, 2 | 8, 8, 1 | 2 | 4, 4, 4 | 8},
};
}  // namespace cdynamo
