document.getElementById("go").onclick = async () => {
  const out = document.getElementById("out");
  out.textContent = "Searching...";
  const found = await (await fetch("/api?q=" + encodeURIComponent(document.getElementById("q").value))).json();
  setTimeout(() => {
    out.innerHTML = "<p>" + found.length + " results</p>" + found.map((x) => "<p>Found " + x + "</p>").join("");
  }, 700);
};
