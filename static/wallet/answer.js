// Tells the page that has opened this window what the user has said. The message goes to the
// origin that he has seen and to no other: a window that shows another page gets nothing.
"use strict";

const { origin, state, code, inbox } = document.getElementById("answer").dataset;
window.opener?.postMessage({ type: "portcullis:answer", state, code }, origin);
if (code) location.replace(inbox); // which leads on to its first request
else window.close();
