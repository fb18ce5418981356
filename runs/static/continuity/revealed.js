// Write out the hidden characters of a model's or a page's text by their code points (on the server: `visible_text.revealed`).
"use strict";

window.revealed = (() => {
  const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\uffa0\u27e8\u27e9]/gu;
  const NAMES = { "\0": "NUL", "\x07": "BEL", "\b": "BACKSPACE", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL" };
  const nameOf = (char) => NAMES[char] || `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return (text) => String(text).replace(UNSEEN, (char) => ("\n\t".includes(char) ? char : `\u27e8${nameOf(char)}\u27e9`));
})();
