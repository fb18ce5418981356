// Collects blocks of text in sections, each under its heading, up to `limit` characters.
class Sections {
  constructor(limit) {
    this.list = [];
    this.left = limit;
    this.truncated = false;
    this.current = null;
    this.prefix = ""; // the start of each line of the current list item or quotation
    this.lead = null; // the start of its first line instead: the bullet
    this.wasTight = false;
  }

  open(heading, level) {
    if (this.truncated) return;
    const text = cut(heading, this.left);
    this.left -= text.length;
    this.truncated = text.length < heading.length;
    this.begin(text, level);
    this.prefix = "";
    this.lead = null;
  }

  begin(heading, level) {
    this.current = { heading, level, text: "" };
    this.list.push(this.current);
  }

  // Blocks inside lists and quotations, and `tight` ones, follow each other without an empty line.
  add(text, tight = false) {
    if (this.truncated || !text) return;
    if (!this.current) this.begin("", 0);
    const isTight = tight || this.prefix !== "" || this.lead !== null;
    const between = isTight && this.wasTight ? "\n" : "\n\n";
    const block = (this.lead ?? this.prefix) + this.continued(text);
    const whole = this.current.text ? between + block : block;
    const piece = cut(whole, this.left);
    this.current.text += piece;
    this.left -= piece.length;
    this.truncated = piece.length < whole.length;
    this.lead = null;
    this.wasTight = isTight;
  }

  continued(text) {
    if (this.prefix === "") return text;
    return text.split("\n").map((line, index) => (index ? (this.prefix + line).trimEnd() : line)).join("\n");
  }

  within(indent, bullet, walk) {
    const outer = this.prefix;
    this.lead = outer + bullet;
    this.prefix = outer + indent;
    walk();
    this.prefix = outer;
    this.lead = null;
  }
}
