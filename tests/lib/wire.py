#!/usr/bin/env python3
"""Frames as docs/wire.md has them: its tables are what they are read by.

  wire.py DOCUMENT FILE...   each FILE is what one side of connections said;
                             prints the kinds that were there. Ends with 1 at
                             the first frame that is not as documented.
  wire.py DOCUMENT           the example in the document alone
"""
import re
import sys


class Wrong(Exception):
    pass


def rows(text, head):
    """The cells of the table that begins with this line."""
    lines = text[text.index(head):].split("\n")[2:]
    return [[c.strip() for c in line.strip("|").split("|")]
            for line in lines[:next(i for i, line in enumerate(lines)
                                    if not line.startswith("|"))]]


class Document:
    def __init__(self, text):
        self.kinds, self.fields, name = {}, {}, None
        for number, what, _, size, _ in rows(
                text, "| kind | name | direction | payload bytes | means |"):
            size = [int(n) for n in size.split(" to ")]
            self.kinds[int(number)] = what, size[0], size[-1]
        for what, *row in rows(text, "| message | offset | bytes | field |"):
            name = what or name
            self.fields.setdefault(name, []).append(row)
        tables = text.split("\n| offset | bytes | field |\n")[1:]
        self.past, self.failure = (
            rows("|\n" + t, "|") for t in tables)
        self.text = text

    def example(self):
        """The bytes of the HELLO that is written out."""
        block = re.search(r"```\n(41 47 4e 54 .*?)```", self.text, re.S)[1]
        before, _, after = re.sub(r"  +[^0-9a-f ].*|  +[a-z].*", "",
                                  block).partition("...")
        first, last = (bytes.fromhex("".join(
            re.findall(r"\b[0-9a-f]{2}\b", part))) for part in (before, after))
        size = 12 + int.from_bytes(first[6:8], "big")
        return first + bytes(size - len(first) - len(last)) + last

    def take(self, table, data, at):
        """Read the rows of a table; returns where they end."""
        begin, last = at, 0
        for offset, size, field in table:
            if offset and int(offset) != at - begin:
                raise Wrong(f"'{field}' is at {at - begin}, not {offset}")
            if not size:
                at = self.take(self.failure, data, at)
            elif " to " in size:
                least, most = map(int, size.split(" to "))
                end = self.take(self.past, data, at)
                if not least <= end - at <= most:
                    raise Wrong(f"'{field}' has {end - at} bytes")
                at = end
            elif " + 0.." in size:
                n = int.from_bytes(data[at:at + 2], "big")
                if n > int(size.split("..")[1]):
                    raise Wrong(f"'{field}' has {n} bytes")
                data[at + 2:at + 2 + n].decode()
                at += 2 + n
            elif size.endswith(" each"):
                at += last * int(size.split()[0])
            else:
                last = int.from_bytes(data[at:at + int(size)], "big")
                at += int(size)
        return at

    def frames(self, data):
        at = 0
        while at < len(data):
            if data[at:at + 5] != b"AGNT\3":
                raise Wrong(f"no frame: {data[at:at + 12].hex()}")
            size = int.from_bytes(data[at + 6:at + 8], "big")
            name, least, most = self.kinds[data[at + 5]]
            payload = data[at + 12:at + 12 + size]
            if len(payload) < size:
                return  # Its sender was killed.
            try:
                end = self.take(self.fields.get(name, []), payload, 0)
                if end != size or not least <= size <= most:
                    raise Wrong(f"{size} bytes, and its fields end at {end}")
            except (Wrong, UnicodeDecodeError) as e:
                raise Wrong(f"{name}: {e}: {payload.hex()}") from e
            yield name
            at += 12 + size


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        doc = Document(f.read())
    seen = set()
    try:
        for file in sys.argv[2:]:
            with open(file, "rb") as f:
                seen.update(doc.frames(f.read()))
        if not sys.argv[2:]:
            seen.update(doc.frames(doc.example()))
    except Wrong as e:
        sys.exit(f"not as in {sys.argv[1]}: {e}")
    print(*(name for name, _, _ in doc.kinds.values() if name in seen))


main()
