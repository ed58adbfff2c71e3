"""Executions in worker processes: traces on demand, and tasks such as calls.

`TracePool.trace` takes a `TraceJob` (block hash, transactions, tracer, timeout) and passes
it to a worker process. The worker does not load Django. It reads the parent's state under
one database snapshot, executes with `evm.tracers.stepping`, and writes the answer to an
unnamed file that the service has opened. The service sends the answer when it is complete,
at the client's pace. Therefore an error is still answered as an error, and a client that
reads slowly holds no worker.

- The same job, requested twice at a time, is executed once.
- A transaction beyond its timeout ends by itself. A worker that has not answered one second
  later is killed, and a worker that reaches its memory limit exits. The request fails with
  geth's `execution timeout` and costs its full price.
- A worker that dies for another reason is a fault of the service: the request fails with
  -32603 and costs nothing, and `trace_workers_lost_total` counts it.
- A job without a remaining request is cancelled.
- Workers start with the first job, execute at low priority, and exit when the service
  closes its end of their socket.

`TracePool.run` takes a `TaskJob`: the name of a function in `nodeapi.tracing.tasks`, a
block hash and JSON arguments.

- Queued tasks are sent to a worker together, and short results return in its messages.
- API keys take turns (`FairQueue`), traces included.
- Workers cache the rows of a block (`nodeapi.tracing.states`) and code. Tasks of one message
  that miss rows read them with one query and begin again (`nodeapi.tracing.running`).
- A task is interrupted when its time is over (`Alarm`). If its worker dies, only the task
  that was executing fails; the others are executed by another worker.

On a sparse state, a job or a task that reads unknown values ends with UnknownValues. The
service proves them and sends it again (`nodeapi.methods.proving`).
"""
