// Counts how often each opcode occurs: {"PUSH1": 3, "ADD": 1}.
{
  counts: {},
  step: function (log) {
    const name = log.op.toString();
    this.counts[name] = (this.counts[name] || 0) + 1;
  },
  fault: function () {},
  result: function () { return this.counts; },
}
