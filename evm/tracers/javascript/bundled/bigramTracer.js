// Counts pairs of opcodes that follow each other within a call: {"PUSH1-ADD": 1}.
{
  counts: {},
  depth: 0,
  previous: '',
  step: function (log) {
    const name = log.op.toString(), depth = log.getDepth();
    if (depth === this.depth) {
      const pair = this.previous + '-' + name;
      this.counts[pair] = (this.counts[pair] || 0) + 1;
    }
    this.previous = name;
    this.depth = depth;
  },
  fault: function () {},
  result: function () { return this.counts; },
}
