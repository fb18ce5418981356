// Show dots in place of the values of secret fields during a screenshot, and restore the fields afterwards.
const COVERED = new Map((globalThis.continuityCovered ??= []));
const PROPERTY = "-webkit-text-security";

const openRoots = (root, found = []) => {
  found.push(root);
  for (const element of all(root, "*")) {
    const inner = shadowOf(element) ?? innerDocument(element);
    if (inner) openRoots(inner, found);
  }
  return found;
};

const cover = (covered) => {
  if (covered) {
    for (const element of findSecrets(openRoots(document)).fields) {
      COVERED.set(element, element.style.getPropertyValue(PROPERTY));
      element.style.setProperty(PROPERTY, "disc", "important");
      if (tagOf(element) === "select") element.style.setProperty("color", "transparent", "important");
    }
  } else {
    for (const [element, before] of COVERED) {
      element.style.setProperty(PROPERTY, before);
      if (tagOf(element) === "select") element.style.removeProperty("color");
    }
    COVERED.clear();
  }
  globalThis.continuityCovered = [...COVERED];
  return COVERED.size;
};
