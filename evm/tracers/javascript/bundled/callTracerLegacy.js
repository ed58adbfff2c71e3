// The tree of calls as geth made it before there were native tracers, from single
// instructions: a call that ran no code has no gas, one that failed without a faulty
// instruction an 'internal failure', and the output is the part of the memory that the
// caller gave for it. Precompiled contracts are left out. A call ends at the next
// instruction of its caller, if that makes no call itself.
{
  calls: [{}],
  hasEntered: false,
  keys: ['type', 'from', 'to', 'value', 'gas', 'gasUsed', 'input', 'output', 'error'],

  hex: function (number) { return '0x' + bigInt(number).toString(16); },
  word: function (log, place) { return log.stack.peek(place).toString(16); },
  range: function (log, place) {
    const start = log.stack.peek(place).valueOf();
    return [start, start + log.stack.peek(place + 1).valueOf()];
  },
  top: function () { return this.calls[this.calls.length - 1]; },

  add: function (call) {
    const caller = this.top();
    caller.calls ??= [];
    caller.calls.push(call);
  },

  begin: function (log, name, members) {
    const gasLeft = log.getGas() - log.getCost();
    const from = toHex(log.contract.getAddress());
    this.calls.push({ type: name, from, gasLeft, ...members });
    this.hasEntered = true;
  },

  /** Note a call, a creation or a self-destruction; return whether it was one. */
  note: function (log, db, name) {
    const memory = (place) => toHex(log.memory.slice(...this.range(log, place)));
    switch (name) {
      case 'CREATE': case 'CREATE2':
        this.begin(log, name, { input: memory(1), value: '0x' + this.word(log, 0) });
        return true;
      case 'SELFDESTRUCT': {
        const self = log.contract.getAddress();
        this.add({
          type: name,
          from: toHex(self),
          to: toHex(toAddress(this.word(log, 0))),
          value: this.hex(db.getBalance(self)),
        });
        return true;
      }
      case 'CALL': case 'CALLCODE': case 'DELEGATECALL': case 'STATICCALL': {
        const to = toAddress(this.word(log, 1));
        if (isPrecompiled(to)) return true;
        const hasValue = name === 'CALL' || name === 'CALLCODE', first = hasValue ? 3 : 2;
        this.begin(log, name, {
          to: toHex(to),
          value: hasValue ? '0x' + this.word(log, 2) : undefined,
          input: memory(first),
          room: this.range(log, first + 2),
        });
        return true;
      }
    }
    return false;
  },

  /** End a call whose caller goes on. */
  end: function (log, db) {
    const call = this.calls.pop(), { gasLeft, allowance } = call;
    const isCreation = call.room === undefined, returned = log.stack.peek(0);
    if (allowance !== undefined) call.gas = this.hex(allowance);
    if (isCreation) {
      call.gasUsed = this.hex(gasLeft - log.getGas());
    } else if (allowance !== undefined) {
      call.gasUsed = this.hex(gasLeft + allowance - log.getGas());
    }
    if (returned.equals(0)) {
      if (call.error === undefined) call.error = 'internal failure';
    } else if (isCreation) {
      const created = toAddress(returned.toString(16));
      call.to = toHex(created);
      call.output = toHex(db.getCode(created));
    } else {
      call.output = toHex(log.memory.slice(...call.room));
    }
    this.add(call);
  },

  step: function (log, db) {
    if (log.getError() !== undefined) {
      this.fault(log);
      return;
    }
    const name = log.op.toString(), depth = log.getDepth();
    if (this.note(log, db, name)) return;
    if (this.hasEntered) {
      if (depth >= this.calls.length) this.top().allowance = log.getGas();
      this.hasEntered = false;
    }
    if (name === 'REVERT') {
      this.top().error = 'execution reverted';
    } else if (depth === this.calls.length - 1) {
      this.end(log, db);
    }
  },

  fault: function (log) {
    if (this.top().error !== undefined) return;
    const call = this.calls.pop();
    call.error = log.getError();
    if (call.allowance !== undefined) {
      call.gas = this.hex(call.allowance);
      call.gasUsed = call.gas;
    }
    if (this.calls.length > 0) this.add(call);
    else this.calls.push(call);
  },

  /** Return a call in the usual order, without what it doesn't have. */
  tidy: function (call) {
    const tidied = {};
    for (const key of this.keys) {
      if (call[key] !== undefined) tidied[key] = call[key];
    }
    if (call.calls !== undefined) {
      tidied.calls = call.calls.map((inner) => this.tidy(inner));
    }
    return tidied;
  },

  result: function (ctx) {
    const { calls, error = ctx.error } = this.calls[0], output = toHex(ctx.output);
    const hasOutput = error === undefined ||
      (error === 'execution reverted' && output !== '0x');
    return this.tidy({
      type: ctx.type,
      from: toHex(ctx.from),
      to: toHex(ctx.to),
      value: this.hex(ctx.value),
      gas: this.hex(ctx.gas),
      gasUsed: this.hex(ctx.gasUsed),
      input: toHex(ctx.input),
      output: hasOutput ? output : undefined,
      error,
      calls,
    });
  },
}
