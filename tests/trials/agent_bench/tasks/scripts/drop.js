for (const card of document.querySelectorAll("[draggable]"))
  card.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", card.textContent));
for (const column of document.querySelectorAll("section")) {
  column.addEventListener("dragover", (event) => event.preventDefault());
  column.addEventListener("drop", (event) => {
    event.preventDefault();
    send(event.dataTransfer.getData("text/plain") + " to " + column.dataset.name);
  });
}
