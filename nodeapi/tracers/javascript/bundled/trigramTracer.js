// Counts runs of three opcodes within a call: {"PUSH1-PUSH1-ADD": 1}.
{
  counts: {},
  depth: 0,
  previous: [],
  step: function (log) {
    const name = log.op.toString(), depth = log.getDepth();
    if (depth !== this.depth) {
      this.previous = [];
      this.depth = depth;
    }
    if (this.previous.length === 2) {
      const run = this.previous.shift() + '-' + this.previous[0] + '-' + name;
      this.counts[run] = (this.counts[run] || 0) + 1;
    }
    this.previous.push(name);
  },
  fault: function () {},
  result: function () { return this.counts; },
}
