// A request that waits for the user. They are led to it, unless it is answered at once, and
// closing the window withdraws it.

function userRequest(windows) {
  const AT_ONCE = 300; // milliseconds within which a rejected call gets its response
  let sent = null;
  let isClosed = false;
  let isPaired = false;
  let unwatch;
  // The time starts at the call, because browsers soon stop opening windows for a click.
  const timer = setTimeout(lead, AT_ONCE);

  function close() {
    isClosed = true;
    sent?.cancel();
  }

  function watch() {
    unwatch ??= windows.watch(close);
  }

  function lead() {
    const isFirst = !windows.isWaiting();
    watch();
    windows.lead(isFirst);
  }

  return {
    // The window of a pairing continues with the request, so no other is opened.
    pairFirst() {
      clearTimeout(timer);
      isPaired = true;
    },
    watch,
    async send(link, method, params) {
      sent = link.start(method, params);
      if (isClosed) sent.cancel();
      const answer = await sent.answer;
      if (answer.error?.code === ALREADY_PENDING) lead(); // to the earlier request
      return answer;
    },
    end() {
      clearTimeout(timer);
      unwatch?.();
    },
    // Closes the window of a pairing after which the wallet has not asked the user.
    leave() {
      if (isPaired) windows.leave();
    },
  };
}
