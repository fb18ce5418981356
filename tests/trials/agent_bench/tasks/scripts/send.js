const send = (name) => fetch("/press", { method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({ name }) }).then((r) => r.json()).then((r) => {
  document.getElementById("out").textContent = "Sent " + name + " " + r.code; });
