// What a page shows, in a form in which clocks, counters and suggestions do not count; and whether it still loads.
const LOADING_WORDS = "searching|loading|fetching|please wait|suche läuft|wird geladen|chargement|cargando|buscando|正在搜索|正在加载|搜索中|加载中|请稍候|読み込み中|検索中";
const LOADING_LINE = new RegExp(`^[^\\p{L}]*(${LOADING_WORDS})([^\\p{L}]*| (results?|for|more|data)\\b.{0,60}|.{0,60}(\\.\\.|…))$`, "iu");
const PASSING = "[role=listbox],[role=timer],[role=marquee],[role=tooltip]";
const LOADERS = "[aria-busy=true],[role=progressbar]:not([aria-valuenow]),progress:not([value])";

const linesOf = (element) => (element.innerText ?? rawText(element)).split("\n")
  .map((line) => collapse(line).trim().replace(/\d+/g, "#")).filter((line) => /[^\s#:.,/%-]/.test(line));

const shownLines = () => {
  const counts = new Map();
  const count = (lines, by) => lines.forEach((line) => counts.set(line, (counts.get(line) ?? 0) + by));
  for (const { root } of findRoots(document)) {
    const top = nodeKind(root) === DOCUMENT ? bodyOf(root) : null;
    if (top) count(linesOf(top), 1);
    else eachChild(root, (child) => { if (nodeKind(child) === ELEMENT && !NO_TEXT.has(tagOf(child))) count(linesOf(child), 1); });
    for (const element of all(root, PASSING)) if (visible(element)) count(linesOf(element), -1);
  }
  return [...counts].filter(([, times]) => times > 0);
};

const loadersShown = () => findRoots(document).flatMap(({ root }) => [...all(root, LOADERS)]).filter(visible).length;

// `text` differs if the page shows something else; `loading` counts signs that something is still to come.
const shownState = () => {
  const lines = shownLines();
  const waiting = lines.filter(([line]) => LOADING_LINE.test(line)).length;
  return { text: hashOf(lines.map(([line, times]) => `${times} ${line}`).sort().join("\n")), loading: waiting + loadersShown(), busy: isBusy() };
};
