// Collects the accounts and storage that a transaction finds: enough to run it again.
{
  accounts: {},
  hasRun: false,
  address: function (word) { return toAddress(word.toString(16)); },
  hex: function (number) { return '0x' + number.toString(16); },

  account: function (address, db) {
    const key = toHex(address);
    if (this.accounts[key] === undefined) {
      this.accounts[key] = {
        balance: this.hex(db.getBalance(address)),
        nonce: db.getNonce(address),
        code: toHex(db.getCode(address)),
        storage: {},
      };
    }
    return this.accounts[key];
  },

  slot: function (address, key, db) {
    const storage = this.account(address, db).storage, name = toHex(key);
    if (storage[name] === undefined) storage[name] = toHex(db.getState(address, key));
  },

  step: function (log, db) {
    const self = log.contract.getAddress(), name = log.op.toString();
    if (!this.hasRun) {
      this.hasRun = true;
      this.account(log.contract.getCaller(), db);
      this.account(self, db);
    }
    // What can't be executed may lack its operands.
    if (log.getError() !== undefined) return;
    switch (name) {
      case 'BALANCE': case 'EXTCODECOPY': case 'EXTCODESIZE': case 'EXTCODEHASH':
        this.account(this.address(log.stack.peek(0)), db);
        break;
      case 'CALL': case 'CALLCODE': case 'DELEGATECALL': case 'STATICCALL':
        this.account(this.address(log.stack.peek(1)), db);
        break;
      case 'CREATE':
        this.account(toContract(self, db.getNonce(self)), db);
        break;
      case 'CREATE2': {
        const start = log.stack.peek(1).valueOf();
        const code = log.memory.slice(start, start + log.stack.peek(2).valueOf());
        const salt = log.stack.peek(3).toString(16);
        this.account(toContract2(self, salt, code), db);
        break;
      }
      case 'SLOAD': case 'SSTORE':
        this.slot(self, toWord(log.stack.peek(0).toString(16)), db);
    }
  },
  fault: function () {},

  result: function (ctx, db) {
    const sender = this.account(ctx.from, db), receiver = this.account(ctx.to, db);
    const add = (account, amount) => {
      account.balance = this.hex(bigInt(account.balance.slice(2), 16).add(amount));
    };
    // At the first instruction the value was moved, and the whole gas paid for. Where
    // there was none, it is over by now: gas was given back, and value after an error.
    if (this.hasRun || ctx.error === undefined) {
      add(sender, ctx.value);
      add(receiver, ctx.value.negate());
    }
    add(sender, ctx.gasPrice.times(this.hasRun ? ctx.gas : ctx.gasUsed));
    sender.nonce--;
    // There was nothing where a contract was created: else it could not have been.
    if (ctx.type === 'CREATE') delete this.accounts[toHex(ctx.to)];
    return this.accounts;
  },
}
