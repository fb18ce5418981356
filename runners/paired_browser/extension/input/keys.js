// The keys of a keyboard in the terms of the DevTools protocol (US layout).
const MODIFIERS = { Alt: 1, Control: 2, Shift: 8 };
export const SHIFT = MODIFIERS.Shift;
const DIGITS = ")!@#$%^&*(";
const MARKS = {
  ";": [":", "Semicolon", 186], "=": ["+", "Equal", 187], ",": ["<", "Comma", 188], "-": ["_", "Minus", 189], ".": [">", "Period", 190],
  "/": ["?", "Slash", 191], "`": ["~", "Backquote", 192], "[": ["{", "BracketLeft", 219], "\\": ["|", "Backslash", 220],
  "]": ["}", "BracketRight", 221], "'": ['"', "Quote", 222],
};
const NAMED = {
  Backspace: 8, Tab: 9, Escape: 27, PageUp: 33, PageDown: 34, End: 35, Home: 36, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40,
  Delete: 46,
};

const typing = (text, code, number, modifiers = 0) => [text, { key: text, code, windowsVirtualKeyCode: number, text, modifiers }];
const letterKeys = [..."abcdefghijklmnopqrstuvwxyz"].flatMap((letter) => {
  const upper = letter.toUpperCase();
  return [typing(letter, `Key${upper}`, upper.charCodeAt(0)), typing(upper, `Key${upper}`, upper.charCodeAt(0), SHIFT)];
});
const digitKeys = [...DIGITS].flatMap((shifted, digit) =>
  [typing(String(digit), `Digit${digit}`, 48 + digit), typing(shifted, `Digit${digit}`, 48 + digit, SHIFT)]);
const markKeys = Object.entries(MARKS).flatMap(([mark, [shifted, code, number]]) =>
  [typing(mark, code, number), typing(shifted, code, number, SHIFT)]);
const named = new Map(Object.entries(NAMED).map(([name, number]) => [name, { key: name, code: name, windowsVirtualKeyCode: number }]));
named.set("Enter", { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" });

// The keys by the character that they type.
export const keyboard = new Map([typing(" ", "Space", 32), ...letterKeys, ...digitKeys, ...markKeys]);

// A key by name, such as Enter, a, Shift+Tab or Control+Shift+z.
export function keyOf(name) {
  if (name.length === 1) return keyboard.get(name);
  const held = name.split("+");
  let last = held.pop();
  if (last.length === 1) last = held.includes("Shift") ? last.toUpperCase() : last.toLowerCase();
  const key = { ...(named.get(last) ?? keyboard.get(last === "Space" ? " " : last)) };
  const modifiers = held.reduce((sum, modifier) => sum + MODIFIERS[modifier], 0);
  if (modifiers & ~SHIFT) delete key.text; // types nothing
  return modifiers ? { ...key, modifiers } : key;
}
