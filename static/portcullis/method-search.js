// Searches the methods of a list while the user types, and counts the selected ones. Without
// this script, the button beside the field searches.
"use strict";

for (const picker of document.querySelectorAll(".picker")) {
  const search = picker.querySelector("[type=search]");
  const options = [...picker.querySelectorAll(".option")];
  const boxes = options.map((option) => option.querySelector("input"));
  const none = picker.querySelector(".none");
  const chosen = picker.querySelector("[data-chosen]");
  const found = picker.querySelector("[data-found]");
  const limit = Number(picker.dataset.limit);

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let matching = 0;
    for (const [index, option] of options.entries()) {
      const text = option.textContent.toLowerCase();
      const matches = words.every((word) => text.includes(word));
      option.hidden = !matches && !boxes[index].checked;
      if (matches) matching += 1;
    }
    none.hidden = matching > 0;
    found.textContent = words.length ? `${matching} methods match.` : "";
  };

  const count = () => {
    const selected = boxes.filter((box) => box.checked).length;
    chosen.textContent = selected
      ? `${selected} of ${limit} selected.`
      : "None selected: all methods are allowed.";
  };

  const button = picker.querySelector("[name=find]"); // members who only view have none
  if (button) button.hidden = true;
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  picker.addEventListener("change", count);
  // The browser may have restored the form's state when the user came back.
  filter();
  count();
}
