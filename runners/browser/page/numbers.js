// Draw the click ids of the elements in view over the page during a screenshot, and erase them afterwards. The marks are in
// a closed shadow root in the top layer, so that neither the page's styles nor its dialogs change or hide them.
const MARK_COLORS = ["#c2185b", "#1565c0", "#2e7d32", "#6a1b9a", "#b34700"];
const LAYER_STYLE = "all: initial; position: fixed; inset: 0; width: 100%; height: 100%; max-width: none; max-height: none;" +
  "margin: 0; padding: 0; border: 0; background: none; overflow: hidden; pointer-events: none;";
const LABEL_HEIGHT = 15;

const eraseNumbers = () => {
  globalThis.continuityNumbers?.remove();
  globalThis.continuityNumbers = null;
  return {};
};

const styled = (style) => {
  const element = document.createElementNS("http://www.w3.org/1999/xhtml", "div");
  element.style.cssText = style;
  return element;
};

const marksInView = () => {
  const marks = [];
  for (const [clickId, reference] of clickIds.elements) {
    const element = reference.deref();
    if (!element?.isConnected || !visible(element) || visibilityOf(element) !== "shown") continue;
    const box = boxOf(element);
    const [from, to] = [inTop(element, box), inTop(element, { x: box.right, y: box.bottom })];
    marks.push({ clickId, x: from.x, y: from.y, width: to.x - from.x, height: to.y - from.y });
  }
  return marks;
};

const drawNumbers = () => {
  eraseNumbers();
  const marks = marksInView();
  const layer = styled(LAYER_STYLE);
  const root = layer.attachShadow({ mode: "closed" });
  for (const { clickId, x, y, width, height } of marks) {
    const color = MARK_COLORS[clickId % MARK_COLORS.length];
    root.append(styled(`position: absolute; box-sizing: border-box; border: 2px solid ${color};` +
      `left: ${x}px; top: ${y}px; width: ${width}px; height: ${height}px;`));
    const top = y >= LABEL_HEIGHT ? y - LABEL_HEIGHT : y;
    const label = styled(`position: absolute; left: ${Math.max(0, x)}px; top: ${Math.max(0, top)}px; background: ${color};` +
      `color: #fff; font: bold 12px/${LABEL_HEIGHT}px sans-serif; padding: 0 3px;`);
    label.textContent = String(clickId);
    root.append(label);
  }
  if (!document.documentElement) return { drawn: 0 }; // the document is being written
  document.documentElement.append(layer);
  globalThis.continuityNumbers = layer;
  if (layer.showPopover) {
    layer.popover = "manual";
    layer.showPopover();
  }
  return { drawn: marks.length };
};
