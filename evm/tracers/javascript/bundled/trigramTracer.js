// Counts runs of three opcodes within a call: {"PUSH1-PUSH1-ADD": 1}. As in geth, the
// instruction at which the depth changes is not counted, and runs at the beginning of a
// call have empty places: {"--PUSH1": 1, "-PUSH1-ADD": 1}.
{
  counts: {},
  depth: 0,
  before: ['', ''],
  step: function (log) {
    const depth = log.getDepth();
    if (depth !== this.depth) {
      this.depth = depth;
      this.before = ['', ''];
      return;
    }
    const run = [...this.before, log.op.toString()], name = run.join('-');
    this.counts[name] = (this.counts[name] || 0) + 1;
    this.before = run.slice(1);
  },
  fault: function () {},
  result: function () { return this.counts; },
}
