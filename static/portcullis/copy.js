// Gives each text that is there to be copied a button that does it. Without this script, or
// where the browser lets no page copy, the text is there to be selected. A text within a
// line, whose data-copy-text may be longer than what is shown, gets a small icon behind it.
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

const SVG = "http://www.w3.org/2000/svg";

function icon() {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("aria-hidden", "true");
  const lines = document.createElementNS(SVG, "path");
  lines.setAttribute("d", "M5.5 5.5h8v8h-8zM2.5 10.5v-8h8");
  drawing.append(lines);
  return drawing;
}

function addIcon(text) {
  const what = text.dataset.copy;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-icon";
  button.title = `Copy ${what}`;
  button.setAttribute("aria-label", `Copy ${what} ${text.dataset.copyText}`);
  button.append(icon());
  button.addEventListener("click", async () => {
    try {
      await copy(text.dataset.copyText);
      button.dataset.done = "";
      told.textContent = `Copied ${what}`;
    } catch {
      getSelection().selectAllChildren(text);
      told.textContent = `Selected ${what}. Copy it with the keyboard.`;
    }
    setTimeout(() => {
      delete button.dataset.done;
      told.textContent = "";
    }, SHOWN);
    button.focus();
  });
  text.after(button);
}

for (const text of document.querySelectorAll("[data-copy-text]")) addIcon(text);

for (const text of document.querySelectorAll("[data-copy]:not([data-copy-text])")) {
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
      say(button, "Selected", `Selected ${what}. Copy it with the keyboard.`);
    }
    button.focus();
  });
  const frame = document.createElement("div");
  frame.className = "copied";
  text.replaceWith(frame);
  frame.append(text, button);
}
