let at = new Date(2027, 0, 1);
const draw = () => {
  document.getElementById("month").textContent =
    at.toLocaleDateString("en", { month: "long", year: "numeric" });
  const days = new Date(at.getFullYear(), at.getMonth() + 1, 0).getDate();
  const box = document.getElementById("days");
  box.innerHTML = "";
  for (let day = 1; day <= days; day += 1) {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = day;
    button.onclick = () => {
      const two = (n) => String(n).padStart(2, "0");
      document.getElementById("value").value = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(day)}`;
      document.getElementById("shown").textContent = "Chosen: " + document.getElementById("value").value;
      document.getElementById("picker").hidden = true;
    };
    box.append(button);
  }
};
const move = (by) => { at = new Date(at.getFullYear(), at.getMonth() + by, 1); draw(); };
document.getElementById("open").onclick = () => { document.getElementById("picker").hidden = false; draw(); };
