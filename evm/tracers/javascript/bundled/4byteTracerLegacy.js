// Counts the functions that were called, by their selector and how many bytes of
// arguments came with it: {"0xa9059cbb-64": 1}. Calls are seen at their opcode, hence
// failed ones count. As in geth, the beginning of a creating transaction's init code
// counts as a selector.
{
  counts: {},
  // Where on the stack a call's input begins and how long it is.
  inputs: { CALL: [3, 4], CALLCODE: [3, 4], DELEGATECALL: [2, 3], STATICCALL: [2, 3] },

  count: function (selector, size) {
    const name = toHex(selector) + '-' + (size - 4);
    this.counts[name] = (this.counts[name] || 0) + 1;
  },

  step: function (log) {
    const input = this.inputs[log.op.toString()];
    if (input === undefined) return;
    if (isPrecompiled(toAddress(log.stack.peek(1).toString(16)))) return;
    const [start, size] = input.map((place) => log.stack.peek(place).valueOf());
    if (size >= 4) this.count(log.memory.slice(start, start + 4), size);
  },
  fault: function () {},

  result: function (ctx) {
    const size = ctx.input.length;
    if (size >= 4) this.count(slice(ctx.input, 0, 4), size);
    return this.counts;
  },
}
