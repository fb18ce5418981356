// The list of runs: a choice in the filter bar is sent at once, without empty fields, and an action on many runs asks first.
"use strict";

(() => {
  const form = () => document.querySelector("form[data-run-filters]");

  function sendWithoutEmptyFields(bar) {
    for (const field of bar.elements) if (field.name && !field.value) field.disabled = true;
    setTimeout(() => { for (const field of bar.elements) field.disabled = false; }, 1000); // when the user comes back
  }

  document.addEventListener("submit", (event) => {
    if (event.target === form()) sendWithoutEmptyFields(event.target);
    const question = event.submitter?.dataset.ask;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("form[data-run-filters] select")) event.target.form.requestSubmit();
  });
})();
