// A custom element whose list is in an open shadow root.
"use strict";

const TOOLS = [
  ["list_task_templates", "list the templates, with schemas and examples"],
  ["run_task_template", "submit a run: sync, async or auto"],
  ["get_task_run", "read a run"],
  ["list_task_runs", "list runs, newest first, filtered by status and template"],
  ["wait_task_run", "wait until a run ends, at most 55 seconds per call"],
  ["cancel_task_run", "cancel a run"],
  ["answer_task_run", "answer a run that waits for an answer"],
  ["subscribe_task_run_events", "wait for the events after a number"],
  ["get_artifact", "read one chunk of an artifact"],
  ["read_page_content", "read only the needed sections or matches of a result"],
  ["get_runtime_profile", "read the limits and modes of this installation"],
];

customElements.define("mcp-tools", class extends HTMLElement {
  connectedCallback() {
    const list = document.createElement("ul");
    for (const [name, does] of TOOLS) {
      const code = document.createElement("code");
      code.textContent = name;
      const item = document.createElement("li");
      item.append(code, `: ${does}`);
      list.append(item);
    }
    const title = document.createElement("h3");
    title.textContent = "Tools of the set “runtime”";
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = "/assets/site.css";
    this.attachShadow({ mode: "open" }).append(style, title, list);
  }
});
