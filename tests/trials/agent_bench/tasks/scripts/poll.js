document.querySelector("button").onclick = async () => {
  await fetch("/start"); const out = document.getElementById("out"); out.textContent = "Working";
  const timer = setInterval(async () => {
    const now = await (await fetch("/state")).json();
    if (now.done) { clearInterval(timer); out.textContent = "Finished: " + now.code; }
  }, 200);
};
