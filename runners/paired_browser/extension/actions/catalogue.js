// The browser actions by name. The server validates their parameters and results (runners/actions/).
import * as input from "./input.js";
import { judge } from "./judge.js";
import * as moving from "./moving.js";
import * as reading from "./reading.js";
import * as stored from "./stored.js";
import * as tabs from "./tabs.js";
import { upload } from "./upload.js";

export const ACTIONS = {
  task_start: tabs.taskStart,
  browser_debugger_attach: tabs.debuggerAttach,
  task_stop: tabs.taskStop,
  browser_wait_for_loaded: reading.waitForLoaded,
  browser_screenshot: stored.screenshot,
  browser_readability_extract: stored.readabilityExtract,
  browser_dom_index: reading.domIndex,
  browser_observe: reading.observe,
  browser_xpath_scan: reading.xpathScan,
  browser_click: input.click,
  browser_type: input.type,
  browser_get_html: stored.getHtml,
  browser_scroll: moving.scroll,
  browser_select: input.select,
  browser_hover: input.hoverOver,
  browser_press_key: input.pressKey,
  browser_go_back: moving.goBack,
  browser_drag: input.dragAndDrop,
  browser_find_text: reading.findText,
  browser_wait_for_text: reading.waitForText,
  browser_upload: upload,
  browser_list_tabs: tabs.listTabs,
  browser_switch_tab: tabs.switchTab,
  browser_close_tab: tabs.closeTab,
  browser_judge: judge,
};
