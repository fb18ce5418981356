const box = document.getElementById("box"), inner = document.getElementById("inner");
const draw = () => {
  const first = Math.floor(box.scrollTop / 40);
  inner.innerHTML = "";
  for (let n = first; n < Math.min(first + 16, ROWS.length); n += 1) {
    const row = document.createElement("button");
    row.style.cssText = `position:absolute;top:${n * 40}px;height:36px;left:0;width:300px`;
    row.textContent = ROWS[n];
    row.onclick = () => fetch("/pick", { method: "POST", headers: { "content-type": "application/json" },
      body: JSON.stringify({ row: ROWS[n] }) }).then(() => { document.getElementById("out").textContent = "Picked " + ROWS[n]; });
    inner.append(row);
  }
};
box.addEventListener("scroll", draw); draw();
