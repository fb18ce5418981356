// A custom element whose list stands in an open shadow root.
"use strict";

const TOOLS = [
  ["list_task_templates", "the work that can be handed over, with schemas and examples"],
  ["run_task_template", "submit a run: sync, async or auto"],
  ["get_task_run", "a run as it is now"],
  ["list_task_runs", "runs, newest first, filtered by status and template"],
  ["wait_task_run", "wait for the end of a run, at most 55 seconds a call"],
  ["cancel_task_run", "stop a run"],
  ["answer_task_run", "answer a run that asked something"],
  ["subscribe_task_run_events", "the events after a number, as soon as there are any"],
  ["get_artifact", "one chunk of an artifact"],
  ["read_page_content", "the sections or matches of a result that are needed, instead of the whole"],
  ["get_runtime_profile", "limits and modes of this installation"],
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
