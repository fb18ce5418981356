// Collects blocks of text into sections, each under its heading, until `limit` characters are used up.
class Sections {
  constructor(limit) {
    this.list = [];
    this.left = limit;
    this.truncated = false;
    this.current = null;
    this.prefix = ""; // what every line of the present list item or quotation begins with
    this.lead = null; // what its first line begins with instead: the bullet
    this.wasTight = false;
  }

  open(heading, level) {
    if (this.truncated) return;
    const kept = cut(heading, this.left);
    this.left -= kept.length;
    this.truncated = kept.length < heading.length;
    this.begin(kept, level);
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
