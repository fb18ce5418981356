// The form of a new run: rows are added and removed, and the first wrong field gets the focus.
"use strict";

(() => {
  const form = document.querySelector("[data-run-form]");
  if (!form) return;
  let number = 10000; // above the numbers of the rows that the server sent

  function addRow(rows) {
    const copy = document.createElement("template");
    copy.innerHTML = rows.querySelector(":scope > template").innerHTML.replaceAll("__row__", String(number += 1)); // rendered and escaped by this server
    const row = copy.content.firstElementChild;
    rows.querySelector(":scope > [data-add-row]").before(row);
    reveal(row);
    row.querySelector("input, select, textarea")?.focus();
  }

  function reveal(root) {
    for (const button of root.querySelectorAll("[data-add-row], [data-remove-row]")) button.hidden = false;
  }

  form.addEventListener("click", (event) => {
    const add = event.target.closest("[data-add-row]"), remove = event.target.closest("[data-remove-row]");
    if (add) addRow(add.closest("[data-rows]"));
    if (remove) remove.closest("[data-row]").remove();
  });

  form.addEventListener("submit", (event) => {
    const button = form.querySelector("button[type=submit]");
    if (button.disabled) event.preventDefault(); // pressed twice
    button.disabled = true;
  });
  window.addEventListener("pageshow", () => { form.querySelector("button[type=submit]").disabled = false; });

  reveal(form);
  form.querySelector("[aria-invalid=true]")?.focus();
})();
