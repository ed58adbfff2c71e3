// On phones each row of a list is a card. Labels its values with the titles of their columns.
"use strict";

function titleOf(cell) {
  return cell.querySelector(".text")?.textContent.trim() ?? "";
}

const list = document.getElementById("result_list");
const titles = [...(list?.tHead.rows[0].cells ?? [])].map(titleOf);
for (const row of list?.tBodies[0].rows ?? []) {
  for (const cell of row.querySelectorAll("td")) {
    const title = titles[cell.cellIndex];
    if (title) cell.dataset.label = title;
  }
}
