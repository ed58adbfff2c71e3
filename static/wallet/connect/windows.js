// The wallet's window. All requests of the page that wait for the user share one.

function walletWindow(wallet) {
  const LOOK = 500; // milliseconds between two checks whether the user has closed the window
  const inbox = `${wallet}/wallet/?of=${encodeURIComponent(location.origin)}`;
  const waiting = new Set(); // functions to call when the user closes the window
  let shown = null;
  let timer;

  // Returns null if the browser opens no window, because there was no click before.
  function show(url) {
    shown = open(url, "portcullis", "popup,width=440,height=720");
    return shown;
  }

  function look() {
    if (!shown?.closed) return;
    for (const closed of [...waiting]) closed();
    shown = null;
  }

  // Calls a function when the user closes the window; returns a function that ends this.
  function watch(closed) {
    waiting.add(closed);
    timer ??= setInterval(look, LOOK);
    return () => {
      waiting.delete(closed);
      if (waiting.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }

  // Leads the user to this page's requests. An open window with another request is not replaced:
  // it shows the next one afterwards. Without a window the requests are in the user's inbox.
  function lead(isFirst) {
    if (!isFirst && shown && !shown.closed) shown.focus();
    else show(inbox);
  }

  function focus() {
    shown?.focus();
  }

  // Closes the window, unless it shows something that the page still waits for.
  function leave() {
    if (waiting.size === 0) shown?.close();
  }

  return { show, watch, lead, focus, leave, isWaiting: () => waiting.size > 0 };
}
