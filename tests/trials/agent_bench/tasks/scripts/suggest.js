const field = document.getElementById("town"), list = document.getElementById("list");
field.addEventListener("input", async () => {
  const found = await (await fetch("/suggest?q=" + encodeURIComponent(field.value))).json();
  list.innerHTML = "";
  for (const town of found) {
    const item = document.createElement("li");
    item.setAttribute("role", "option"); item.textContent = town.name;
    item.onmousedown = (event) => {
      event.preventDefault(); field.value = town.name;
      document.getElementById("code").value = town.code; list.innerHTML = "";
    };
    list.append(item);
  }
});
