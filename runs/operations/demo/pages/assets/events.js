// Renders the event table late, as many pages do: a timer, a request, then rows in two batches.
"use strict";

const PAUSE_MS = 300;

function cell(tag, content) {
  const element = document.createElement(tag);
  element.append(content);
  return element;
}

function row({ type, when, data }) {
  const name = cell("th", cell("code", type));
  name.scope = "row";
  const tableRow = document.createElement("tr");
  tableRow.append(name, cell("td", when), cell("td", data));
  return tableRow;
}

function table(caption) {
  const head = document.createElement("tr");
  for (const title of ["Type", "When", "Its data"]) {
    const column = cell("th", title);
    column.scope = "col";
    head.append(column);
  }
  const body = document.createElement("tbody");
  const element = document.createElement("table");
  element.append(cell("caption", caption), cell("thead", head), body);
  return { element, body };
}

async function draw() {
  const container = document.getElementById("events");
  const events = await (await fetch(container.dataset.source)).json();
  const { element, body } = table(`The ${events.length} types of events`);
  const half = Math.ceil(events.length / 2);
  body.append(...events.slice(0, half).map(row));
  container.append(element);
  document.getElementById("waiting").remove();
  setTimeout(() => body.append(...events.slice(half).map(row)), PAUSE_MS / 3);
}

setTimeout(draw, PAUSE_MS);
