// The tree of calls as it was told before there were native tracers: a call that ran no
// code has no gas, one that failed for a reason unseen an 'internal failure', and the
// output is what the caller had room for. Precompiled contracts are left out.
{
  calls: [{ calls: [] }],
  room: 0,
  hex: function (number) { return '0x' + bigInt(number).toString(16); },
  isCreation: function (type) { return type === 'CREATE' || type === 'CREATE2'; },

  /** Return a call in the usual order, without what it doesn't have. */
  tidy: function (call) {
    const tidied = {}, keys = [
      'type', 'from', 'to', 'value', 'gas', 'gasUsed', 'input', 'output', 'error',
    ];
    for (const key of keys) {
      if (call[key] !== undefined) tidied[key] = call[key];
    }
    if (call.calls.length > 0) tidied.calls = call.calls;
    return tidied;
  },

  step: function (log) {
    const call = this.calls[this.calls.length - 1], op = log.op.toNumber();
    call.hasRun = true;
    if (log.getError() !== undefined) {
      call.hasFaulted = true;
    } else if (op === 0xf1 || op === 0xf2) {
      this.room = log.stack.peek(6).valueOf();
    } else if (op === 0xf4 || op === 0xfa) {
      this.room = log.stack.peek(5).valueOf();
    }
  },
  fault: function () { this.calls[this.calls.length - 1].hasFaulted = true; },

  enter: function (frame) {
    const type = frame.getType(), to = frame.getTo();
    const hasValue = type !== 'DELEGATECALL' && type !== 'STATICCALL';
    this.calls.push({
      type,
      from: toHex(frame.getFrom()),
      to: toHex(to),
      value: hasValue ? this.hex(frame.getValue()) : undefined,
      input: toHex(frame.getInput()),
      calls: [],
      allowance: frame.getGas(),
      room: this.room,
      isHidden: type.includes('CALL') && isPrecompiled(to),
    });
  },

  exit: function (outcome) {
    const call = this.calls.pop(), error = outcome.getError();
    if (call.isHidden) return;
    const isCreation = this.isCreation(call.type);
    if (call.hasRun) call.gas = this.hex(call.allowance);
    if (call.hasRun || isCreation) call.gasUsed = this.hex(outcome.getGasUsed());
    if (error !== undefined) {
      const isSeen = call.hasFaulted || error === 'execution reverted';
      call.error = isSeen ? error : 'internal failure';
      if (isCreation) call.to = undefined;
    } else if (call.hasRun || isCreation) {
      const output = outcome.getOutput(), size = isCreation ? output.length : call.room;
      call.output = toHex(output.subarray(0, size));
    }
    this.calls[this.calls.length - 1].calls.push(this.tidy(call));
  },

  result: function (ctx) {
    const output = toHex(ctx.output);
    const tellsOutput = ctx.error === undefined ||
      (ctx.error === 'execution reverted' && output !== '0x');
    return this.tidy({
      type: ctx.type,
      from: toHex(ctx.from),
      to: toHex(ctx.to),
      value: this.hex(ctx.value),
      gas: this.hex(ctx.gas),
      gasUsed: this.hex(ctx.gasUsed),
      input: toHex(ctx.input),
      output: tellsOutput ? output : undefined,
      error: ctx.error,
      calls: this.calls[0].calls,
    });
  },
}
