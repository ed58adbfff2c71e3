// Lists what was executed for the disassembler evmdis
// (https://github.com/Arachnid/evmdis): every instruction with what it left on the
// stack, a call's own instructions within it.
{
  frames: [{ ops: [] }],

  /** Return how many words of the stack an instruction writes. */
  written: function (op) {
    if (op >= 0x80 && op <= 0x8f) return op - 0x80 + 2;
    if (op >= 0x90 && op <= 0x9f) return op - 0x90 + 2;
    const none = [
      0x00, 0x37, 0x39, 0x3c, 0x3e, 0x50, 0x52, 0x53, 0x55, 0x56, 0x57, 0x5b, 0x5d,
      0x5e, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xf3, 0xfd, 0xfe, 0xff,
    ];
    return none.includes(op) ? 0 : 1;
  },

  /** Add to a call's entry what it was called with; `first` is its input's place. */
  call: function (entry, log, first, to) {
    const { stack, memory } = log, start = stack.peek(first).valueOf();
    entry.input = memory.slice(start, start + stack.peek(first + 1).valueOf());
    if (to !== undefined) entry.to = stack.peek(to).toString(16);
    if (to !== undefined) entry.gas = stack.peek(0).valueOf();
    entry.error = null;
    entry.return = null;
    entry.ops = [];
  },

  step: function (log) {
    const { stack, memory } = log, op = log.op.toNumber(), depth = log.getDepth();
    // Calls that ran no code, and those that are over.
    this.frames.length = Math.min(this.frames.length, depth);
    const frame = this.frames[depth - 1];
    if (log.getError() !== undefined) {
      frame.error = log.getError();
      return;
    }
    const entry = { op, depth, result: [] };
    const last = frame.ops[frame.ops.length - 1];
    if (last !== undefined) {
      for (let i = 0; i < this.written(last.op); i++) {
        last.result.push(stack.peek(i).toString(16));
      }
    }
    frame.ops.push(entry);
    switch (log.op.toString()) {
      case 'CALL': case 'CALLCODE':
        this.call(entry, log, 3, 1);
        entry.value = stack.peek(2).toString(16);
        break;
      case 'DELEGATECALL': case 'STATICCALL':
        this.call(entry, log, 2, 1);
        break;
      case 'CREATE': case 'CREATE2':
        this.call(entry, log, 1);
        entry.value = stack.peek(0).toString(16);
        break;
      case 'RETURN': case 'REVERT': {
        const start = stack.peek(0).valueOf();
        frame.return = memory.slice(start, start + stack.peek(1).valueOf());
        break;
      }
      case 'STOP': case 'SELFDESTRUCT':
        frame.return = new Uint8Array(0);
        break;
      case 'JUMPDEST':
        entry.pc = log.getPC();
        break;
      default:
        if (log.op.isPush()) entry.len = op - 0x5e;
    }
    if (entry.ops !== undefined) this.frames.push(entry);
  },

  fault: function (log) {
    const frame = this.frames[log.getDepth() - 1];
    if (frame !== undefined) frame.error = log.getError();
  },

  result: function () { return this.frames[0].ops; },
}
