// Lists what was executed for the disassembler evmdis
// (https://github.com/Arachnid/evmdis): every instruction with what it left on the
// stack, a call's own instructions within it. As in geth, results of opcodes that came
// after Byzantium are missing, creations have no instructions of their own, and the
// first instruction after a call is left out.
{
  frames: [{ ops: [] }],

  /** Return how many words of the stack are noted as the results of an opcode. */
  written: function (op) {
    const within = (first, last) => op >= first && op <= last;
    if (within(0x80, 0x8f)) return op - 0x7e;
    if (within(0x90, 0x9f)) return op - 0x8e;
    const isOne = within(0x01, 0x0b) || within(0x10, 0x1a) || op === 0x20 ||
      within(0x30, 0x36) || op === 0x38 || within(0x3a, 0x3b) || within(0x40, 0x45) ||
      op === 0x51 || op === 0x54 || within(0x58, 0x5a) || within(0x60, 0x7f) ||
      within(0xf0, 0xf2);
    return isOne ? 1 : 0;
  },

  part: function (log, place) {
    const start = log.stack.peek(place).valueOf();
    return log.memory.slice(start, start + log.stack.peek(place + 1).valueOf());
  },

  /** Begin a call's entry; `input` is the place of its input on the stack. */
  begin: function (entry, log, input) {
    const value = input === 3 ? { value: log.stack.peek(2).toString() } : {};
    Object.assign(entry, {
      gas: log.stack.peek(0).valueOf(),
      to: log.stack.peek(1).toString(16),
      ...value,
      input: this.part(log, input),
      error: null,
      return: null,
      ops: [],
    });
    this.frames.push(entry);
  },

  step: function (log) {
    const frame = this.frames[this.frames.length - 1], depth = log.getDepth();
    const error = log.getError();
    if (error !== undefined) {
      frame.error = error;
      return;
    }
    if (depth !== this.frames.length) {
      this.frames.length = Math.min(this.frames.length, depth);
      return;
    }
    const op = log.op.toNumber(), name = log.op.toString();
    const last = frame.ops[frame.ops.length - 1];
    if (last !== undefined) {
      for (let i = 0; i < this.written(last.op); i++) {
        last.result.push(log.stack.peek(i).toString(16));
      }
    }
    const isNamed = name === 'DELEGATECALL' || name === 'STATICCALL';
    const entry = { op: isNamed ? name : op, depth, result: [] };
    if (isNamed) this.begin(entry, log, 2);
    if (name === 'CALL' || name === 'CALLCODE') this.begin(entry, log, 3);
    if (name === 'RETURN' || name === 'REVERT') frame.return = this.part(log, 0);
    if (name === 'STOP' || name === 'SELFDESTRUCT') frame.return = new Uint8Array(0);
    if (name === 'JUMPDEST') entry.pc = log.getPC();
    if (log.op.isPush()) entry.len = op - 0x5e;
    frame.ops.push(entry);
  },
  fault: function () {},

  result: function () { return this.frames[0].ops; },
}
