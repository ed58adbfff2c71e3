// Sends the user's answer to the page that has opened this window. The message goes only to the
// origin that the user has seen: a window that shows another page does not receive it.
"use strict";

const { origin, state, code, inbox, stays } = document.getElementById("answer").dataset;
window.opener?.postMessage({ type: "portcullis:answer", state, code }, origin);
if (code) location.replace(inbox); // redirects to the page's first request
else if (stays === undefined) window.close();
