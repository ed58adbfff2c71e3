// Counts the functions that were called, by their selector and how many bytes of
// arguments came with it: {"0xa9059cbb-64": 1}.
{
  counts: {},
  count: function (input) {
    if (input.length < 4) return;
    const name = toHex(slice(input, 0, 4)) + '-' + (input.length - 4);
    this.counts[name] = (this.counts[name] || 0) + 1;
  },
  isCall: function (type) {
    return type !== 'SELFDESTRUCT' && type !== 'CREATE' && type !== 'CREATE2';
  },
  enter: function (frame) {
    if (this.isCall(frame.getType()) && !isPrecompiled(frame.getTo())) {
      this.count(frame.getInput());
    }
  },
  exit: function () {},
  fault: function () {},
  result: function (ctx) {
    if (ctx.type === 'CALL') this.count(ctx.input);
    return this.counts;
  },
}
