const results = document.getElementById("results");
setInterval(() => { document.getElementById("clock").textContent = new Date().toISOString(); }, 250);
document.getElementById("go").onclick = async () => {
  results.textContent = "Searching...";
  const q = document.getElementById("q").value;
  const found = await (await fetch("/api/search?q=" + encodeURIComponent(q))).json();
  setTimeout(() => {
    results.innerHTML = found.length === 0 ? "<p>No results.</p>"
      : `<p>${found.length} results</p><ul>`
        + found.map((x) => `<li><a href=/item/${x.number}>${x.name}</a> ${x.price} EUR</li>`).join("") + "</ul>";
  }, 900);
};
