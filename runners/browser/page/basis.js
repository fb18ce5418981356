// What an action was judged by: the element that its reference named then, under a name that no other document has.
const nodes = (globalThis.continuityNodes ??= { names: new WeakMap(), elements: new Map() });
const nameOfNode = (element) => {
  if (!nodes.names.has(element)) {
    const name = crypto.getRandomValues(new Uint32Array(4)).join("-");
    nodes.names.set(element, name);
    nodes.elements.set(name, new WeakRef(element));
  }
  return nodes.names.get(element);
};
const nodeNamed = (name) => nodes.elements.get(name)?.deref() ?? null;
