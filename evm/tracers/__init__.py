"""Tracers: observers of an execution, which produce trace records and trace results.

During an import, `watching` reports calls, creations, logs and accesses: it wraps only the
opcodes that cause them. `frames` builds the call tree. Values need no hook: the world's
journal has the values before a transaction. `recorder` makes the trace records of many
transactions at a time, and `record` packs them as JSON with placeholders for parts that
are stored elsewhere (members of the transaction, code).

`derived` computes the results of native tracers from trace records.

Tracers that need single instructions (the struct logger, keccak256PreimageTracer,
erc7562Tracer, JavaScript) run with `stepping`, a second interpreter loop that computes the
exact cost of an instruction before it executes it, in geth's order. `failures` converts
causes of failure to geth's texts.

`javascript` runs a tracer in one QuickJS context per transaction, with 256 MiB of memory and
the processor time that remains until the transaction's deadline. Each instruction is one
call into the context with its scalar values; stack, memory and state are fetched when the
program asks for them.
"""
