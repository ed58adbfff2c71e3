// Collects the accounts and storage that a transaction finds, as geth did before there
// were native tracers. Accounts are read when they are first named: of the sender and
// the receiver the value is given back in the end, and of the sender the tip for the gas
// used; what was burnt is not.
{
  accounts: null,
  hex: function (number) { return '0x' + number.toString(16); },
  addressAt: function (log, place) {
    return toAddress(log.stack.peek(place).toString(16));
  },

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

  step: function (log, db) {
    const self = log.contract.getAddress();
    if (this.accounts === null) {
      this.accounts = {};
      this.account(self, db);
    }
    switch (log.op.toString()) {
      case 'BALANCE': case 'EXTCODECOPY': case 'EXTCODESIZE': case 'EXTCODEHASH':
        this.account(this.addressAt(log, 0), db);
        break;
      case 'CALL': case 'CALLCODE': case 'DELEGATECALL': case 'STATICCALL':
        this.account(this.addressAt(log, 1), db);
        break;
      case 'CREATE':
        this.account(toContract(self, db.getNonce(self)), db);
        break;
      case 'CREATE2': {
        const [start, size] = [1, 2].map((place) => log.stack.peek(place).valueOf());
        const code = log.memory.slice(start, start + size);
        const salt = log.stack.peek(3).toString(16);
        this.account(toContract2(self, salt, code), db);
        break;
      }
      case 'SLOAD': case 'SSTORE': {
        const slot = toWord(log.stack.peek(0).toString(16)), name = toHex(slot);
        const { storage } = this.accounts[toHex(self)];
        if (storage[name] === undefined) storage[name] = toHex(db.getState(self, slot));
      }
    }
  },
  fault: function () {},

  result: function (ctx, db) {
    if (this.accounts === null) {
      this.accounts = {};
      this.account(ctx.to, db);
    }
    const sender = this.account(ctx.from, db), receiver = this.accounts[toHex(ctx.to)];
    const [paid, received] = [sender, receiver].map(
      (account) => bigInt(account.balance.slice(2), 16));
    receiver.balance = this.hex(received.subtract(ctx.value));
    // A product of plain numbers, which is rounded beyond 2**53.
    sender.balance = this.hex(paid.add(ctx.value).add(ctx.gasUsed * ctx.gasPrice));
    sender.nonce--;
    // There was nothing where a contract was created: else it could not have been.
    if (ctx.type === 'CREATE') delete this.accounts[toHex(ctx.to)];
    return this.accounts;
  },
}
