"""Characters that a person may read as another, ASCII one.

The table is that of Unicode's confusables (UTS #39) for single characters, without those that
compatibility normalization maps to ASCII and without quotes; small capitals and letters such as the
Greek kappa are added.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Set
from functools import lru_cache

# Punctuation that looks like ASCII wherever it is.
_PUNCTUATION = frozenset(
    "\u2044\u2215\u29f8\u2216\u29f5\u2223\u01c0\u2236\ua789\u02d0\u2010\u2011\u2012\u2013\u2212"
    "\u02bc\u02b9\u2032\u201a\u02cb\u2217\u2219\u204e\u02c2\u02c3\u2039\u203a\u2795\u01c3\ua4f8"
    "\u02d7\u02f8\u2041\u2043\u205a\u2571\u2796\u27cb\u27cd\u29f9\u31d3\u31d4\u2f02\u2f03\ufe30\u2025"
)
_FULLWIDTH = frozenset("，！？：；（）")  # ordinary punctuation beside Chinese characters
_DASHES = "\u058a\u05be\u1400\u1806\u2014\u2015\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u301c\u3030\u30a0"
# Dots and strokes that are ordinary, unless between two ASCII characters.
_BETWEEN = "\u00b7\u0387\u1427\u16eb\u2022\u2027\u22c5\u3002\u30fb\ua78f\u2500\u3161\u30fc\u4e00"
_LETTERS = frozenset({"Lu", "Ll", "Lt", "Nl"})  # categories that also have ligatures and numerals
# ASCII character, and the code points of letters, digits and signs that look like it. Many of these
# are ordinary letters of other languages.
_TABLE = {
    "-": "06D4 2CBA FE58",
    ".": "0660 06F0 0701 0702 A60E 10A50 1D16D",
    "/": "1735 2CC6 3033 30CE 4E3F 1D23A",
    "\\": "4E36 1D20F 1D23B",
    ":": "0589 05C3 0703 0704 0903 0A83 16EC 1803 1809 A4FD",
    "0": "039F 041E 0555 07C0 09E6 0B20 0B66 12D0 2C9E 2D54 3007 A4F3 10292 102AB 10404 104C2 10516"
    " 114D0 118B5 118E0",
    "1": "0196 0399 0406 04C0 05C0 05D5 05DF 0627 0661 06F1 07CA 16C1 23FD 2C92 2D4F A4F2 1028A"
    " 10309 10320 16F28 1E8C7 FE8D FE8E FFE8 1EE00 1EE80",
    "2": "01A7 03E8 14BF A644 A6EF A75A",
    "3": "01B7 021C 0417 04E0 2CCC A76A A7AB 118CA 16F3B 1D206",
    "4": "13CE 118AF",
    "5": "01BC 118BB",
    "6": "0431 13EE 2CD2 118D5",
    "7": "104D2 118C6 1D212",
    "8": "0222 0223 09EA 0A6A 0B03 1031A 1E8CB",
    "9": "09ED 0A67 0B68 0D6D 2CCA A76E 118AC 118CC 118D6",
    "A": "0391 0410 13AA 15C5 A4EE 102A0 16F40",
    "B": "0392 0412 13F4 15F7 A4D0 A7B4 10282 102A1 10301 0299",
    "C": "0421 13DF 2CA4 A4DA 102A2 10302 10415 1051C 118E9 118F2 1F74C",
    "D": "13A0 15DE 15EA A4D3 1D05",
    "E": "0395 0415 13AC 22FF 2D39 A4F0 10286 118A6 118AE 1D07",
    "F": "03DC 15B4 A4DD A798 10287 102A5 10525 118A2 118C2 1D213 A730",
    "G": "050C 13C0 13F3 A4D6 0262",
    "H": "0397 041D 13BB 157C 2C8E A4E7 102CF 029C",
    "J": "037F 0408 13AB 148D A4D9 A7B2 1D0A",
    "K": "039A 041A 13E6 16D5 2C94 A4D7 10518 1D0B",
    "L": "13DE 14AA 2CD0 A4E1 1041B 10526 118A3 118B2 16F16 1D22A 029F",
    "M": "039C 03FA 041C 13B7 15F0 16D6 2C98 A4DF 102B0 10311 1D0D",
    "N": "039D 2C9A A4E0 10513 0274",
    "P": "03A1 0420 13E2 146D 2CA2 A4D1 10295 1D18",
    "Q": "2D55",
    "R": "01A6 13A1 13D2 1587 A4E3 104B4 16F35 1D216 0280",
    "S": "0405 054F 13D5 13DA A4E2 10296 10420 16F3A",
    "T": "03A4 0422 13A2 22A4 27D9 2CA6 A4D4 10297 102B1 10315 118BC 16F0A 1F768 1D1B",
    "U": "054D 1200 144C 222A 22C3 A4F4 104CE 118B8 16F42",
    "V": "0474 0667 06F7 13D9 142F 2D38 A4E6 A6DF 1051D 118A0 16F08 1D20D",
    "W": "051C 13B3 13D4 A4EA 118E6 118EF",
    "X": "03A7 0425 166D 16B7 2573 2CAC 2D5D A4EB A7B3 10290 102B4 10317 10322 10527 118EC",
    "Y": "03A5 0423 04AE 13A9 13BD 2CA8 A4EC 102B2 118A4 16F43",
    "Z": "0396 13C3 A4DC 102F5 118A9 118E5",
    "a": "0251 03B1 0430 237A",
    "b": "0184 042C 13CF 1472 15AF",
    "c": "0441 1D04 2CA5 ABAF 1043D",
    "d": "0501 13E7 146F A4D2",
    "e": "0435 04BD 212E AB32",
    "f": "0584 1E9D A799 AB35",
    "g": "018D 0261 0581 1D83",
    "h": "04BB 0570 13C2",
    "i": "0131 0269 026A 02DB 037A 03B9 0456 04CF 13A5 2373 A647 AB75 118C3",
    "j": "03F3 0458",
    "k": "03BA",
    "m": "11700 118E3",
    "n": "0578 057C",
    "o": "03BF 03C3 043E 0585 05E1 0647 0665 06BE 06C1 06D5 06F5 0966 0A66 0AE6 0BE6 0C02 0C66 0C82"
    " 0CE6 0D02 0D20 0D66 0D82 0E50 0ED0 101D 1040 10FF 1D0F 1D11 2C9F AB3D 1042C 104EA 118C8"
    " 118D7 FBA6 FBA7 FBA8 FBA9 FBAA FBAB FBAC FBAD FEE9 FEEA FEEB FEEC 1EE24 1EE64 1EE84",
    "p": "03C1 0440 2374 2CA3",
    "q": "051B 0563 0566",
    "r": "0433 1D26 2C85 AB47 AB48 AB81",
    "s": "01BD 0455 A731 ABAA 10448 118C1",
    "t": "03C4",
    "u": "028B 03C5 057D 1D1C A79F AB4E AB52 104F6 118D8",
    "v": "03BD 0475 05D8 1D20 2228 22C1 ABA9 11706 118C0",
    "w": "026F 0461 051D 0561 1D21 AB83 1170A 1170E 1170F",
    "x": "0445 03C7 1541 157D 166E 292B 292C 2A2F",
    "y": "0263 028F 03B3 0443 04AF 10E7 1D8C 1EFF AB5A 118DC",
    "z": "1D22 AB93 118C4",
}
_ASCII_OF = {chr(int(code, 16)): char for char, codes in _TABLE.items() for code in codes.split()}
_CASED = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
_SHORT = 2  # letters of a word or abbreviation that may stand after a point in prose
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"\w+")
# Such as a host name, a path, an address. A run of separators is searched from its start alone: the
# text may be long, and other starts would make that quadratic.
_CHAIN = re.compile(r"(?<![./:@])[./:@]*\w+(?:[./:@]+\w+)*")
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]")


def positions_of_look_alikes(text: str) -> Set[int]:
    """Return where the text has characters that a person may read as ASCII ones.

    A letter in a word with ASCII letters or digits, or in a host name, path or address with these,
    counts alone. A word without them counts if all of its letters look like Latin ones, unless it
    stands in a line in which most letters of its script belong to other words: ordinary prose.
    """
    if text.isascii():
        return frozenset()
    found = {
        match.start()
        for match in _NOT_ASCII.finditer(text)
        if _is_like_ascii(match[0])
        and not (match[0] in _FULLWIDTH and _is_beside_ideograph(text, match.start()))
    }
    for pattern in (_BESIDE_ASCII, _BETWEEN_ASCII):
        for match in pattern.finditer(text):
            found.update(range(*match.span()))
    for line in _LINE.finditer(text):
        found.update(line.start() + at for at in _in_line(line[0]))
    return found


@lru_cache(maxsize=4096)
def script_of(char: str) -> str:
    """Return the first word of a character's Unicode name: for a letter, that of its script."""
    plain = unicodedata.normalize("NFKC", char)
    return unicodedata.name(plain[0], "").partition(" ")[0]


@lru_cache(maxsize=4096)
def _is_like_ascii(char: str) -> bool:
    plain = unicodedata.normalize("NFKC", char)
    is_alike = len(plain) == 1 or unicodedata.category(char) in _LETTERS
    return char in _PUNCTUATION or (is_alike and plain.isascii())


def _is_beside_ideograph(text: str, at: int) -> bool:
    return any(unicodedata.category(char) == "Lo" for char in text[max(0, at - 1) : at + 2])


def _in_line(line: str) -> Iterator[int]:
    if line.isascii():
        return
    prose = _prose_scripts(line)
    for chain in _CHAIN.finditer(line):
        has_ascii = bool(_ASCII_WORD.search(chain[0]))
        for word in () if chain[0].isascii() else _WORD.finditer(chain[0]):
            is_alone = word[0] == chain[0] or len(word[0]) <= _SHORT
            start = chain.start() + word.start()
            for at in _in_word(word[0], has_ascii, prose if is_alone else frozenset()):
                yield start + at


def _in_word(word: str, is_beside_ascii: bool, prose: Set[str]) -> list[int]:
    """Return the look-alikes of a word.

    Args:
        prose: scripts in which the word may be an ordinary one.
    """
    letters = {at: script for at, char in enumerate(word) if (script := _cased_script(char))}
    scripts = set(letters.values())
    has_latin = bool(_ASCII_LETTER.search(word))
    is_mixed = bool(scripts - {"LATIN"}) if has_latin else len(scripts) > 1
    if is_mixed or (not has_latin and not scripts <= prose and _looks_like_latin(word)):
        return list(letters)
    return [at for at in letters if is_beside_ascii and _ascii_of(word[at])]


def _prose_scripts(line: str) -> Set[str]:
    """Return the scripts most of whose letters, in this line, are in words that cannot be read as
    Latin ones.
    """
    excess: Counter[str] = Counter()
    for word in _WORD.findall(line):
        if not _ASCII_LETTER.search(word):
            counted = Counter(script for char in word if (script := _cased_script(char)))
            (excess.subtract if _looks_like_latin(word) else excess.update)(counted)
    return {script for script, count in excess.items() if count > 0}


def _looks_like_latin(word: str) -> bool:
    targets = [_ascii_of(char) for char in word if not char.isascii() and char.isalpha()]
    return all(target.isalpha() or target in ("0", "1") for target in targets)


@lru_cache(maxsize=4096)
def _cased_script(char: str) -> str:
    """Return the script of a letter; empty for ASCII and for scripts without upper case."""
    script = "" if char.isascii() or not char.isalpha() else script_of(char)
    return script if script in _CASED else ""


@lru_cache(maxsize=4096)
def _ascii_of(char: str) -> str:
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain.isascii() else _ASCII_OF.get(plain, "")


# Ordinary unless they touch ASCII: letters of scripts without upper case, signs and dashes.
_CASELESS = "".join(char for char in _ASCII_OF if not _cased_script(char)) + _DASHES
_BESIDE_ASCII = re.compile(
    rf"(?<=[A-Za-z0-9_])[./:@]*[{_CASELESS}]+"
    rf"|(?<![{_CASELESS}])[{_CASELESS}]++(?=[./:@]*[A-Za-z0-9_])"
)
_BETWEEN_ASCII = re.compile(rf"(?<=[A-Za-z0-9_])[{_BETWEEN}]+(?=[A-Za-z0-9_])")
