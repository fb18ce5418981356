class Panel extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `<section><p>LABEL</p>INNER</section>`;
    const button = root.querySelector("button");
    if (button) button.onclick = () => send(root.querySelector("input").value);
  }
}
customElements.define("x-panel", Panel);
class Outer extends HTMLElement {
  connectedCallback() { this.attachShadow({ mode: "open" }).innerHTML = "<x-panel></x-panel>"; }
}
customElements.define("x-outer", Outer);
