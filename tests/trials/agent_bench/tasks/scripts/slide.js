const knob = document.getElementById("knob");
let from = null;
knob.addEventListener("pointerdown", (event) => { from = event.clientX - knob.offsetLeft; knob.setPointerCapture(event.pointerId); });
knob.addEventListener("pointermove", (event) => {
  if (from === null) return;
  const at = Math.max(0, Math.min(300, event.clientX - from));
  knob.style.left = at + "px"; document.getElementById("at").textContent = "Level " + Math.round(at / 30);
});
knob.addEventListener("pointerup", () => { from = null; });
