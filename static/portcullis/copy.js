// Gives each text that is there to be copied a button that does it. Without this script, or
// where the browser lets no page copy, the text is there to be selected.
"use strict";

const SHOWN = 2000; // milliseconds for which a button says what it has done

const told = document.createElement("p"); // for screen readers
told.className = "unseen";
told.setAttribute("role", "status");
document.body.append(told);

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Pages that came without encryption have only the old way.
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not allowed");
}

function say(button, word, sentence) {
  button.textContent = word;
  told.textContent = sentence;
  setTimeout(() => {
    button.textContent = "Copy";
    told.textContent = "";
  }, SHOWN);
}

for (const text of document.querySelectorAll("[data-copy]")) {
  const what = text.dataset.copy;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${what}`);
  button.addEventListener("click", async () => {
    try {
      await copy(text.textContent);
      say(button, "Copied", `Copied ${what}`);
    } catch {
      getSelection().selectAllChildren(text);
      say(button, "Selected", `Selected ${what}, to be copied by hand`);
    }
    button.focus();
  });
  const frame = document.createElement("div");
  frame.className = "copied";
  text.replaceWith(frame);
  frame.append(text, button);
}
