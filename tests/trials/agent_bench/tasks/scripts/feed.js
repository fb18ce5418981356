let at = 0, loading = false;
const more = async () => {
  if (loading) return;
  loading = true;
  const rows = await (await fetch("/rows?at=" + at)).json();
  at += rows.length;
  for (const row of rows) {
    const item = document.createElement("p");
    item.style.height = "60px"; item.textContent = row;
    document.getElementById("feed").append(item);
  }
  loading = false;
};
addEventListener("scroll", () => { if (innerHeight + scrollY > document.body.scrollHeight - 200) more(); });
more();
