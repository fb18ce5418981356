const list = document.getElementById("list"), rows = [...list.children];
let at = -1;
list.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") at = Math.min(at + 1, rows.length - 1);
  if (event.key === "ArrowUp") at = Math.max(at - 1, 0);
  if (event.key === "Enter") send(rows[at].textContent);
  rows.forEach((row, n) => row.setAttribute("aria-selected", n === at));
  document.getElementById("now").textContent = at < 0 ? "" : "On " + rows[at].textContent;
});
