"""What tests ask of a page: its elements, its tables, and whether it is well formed."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input"}


@dataclass
class Element:
    """A tag, its attributes, and the text inside it."""

    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    inside: list["Element"] = field(default_factory=list)

    def all(self, tag: str) -> list["Element"]:
        """Every element of this kind below."""
        return [found for child in self.inside for found in ([child] if child.tag == tag else []) + child.all(tag)]


class Page(HTMLParser):
    """A page as a tree; a tag that is closed wrongly, or never, is an error."""

    def __init__(self, text: str):
        super().__init__()
        self.text = text
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root], f"never closed: {[element.tag for element in self.open[1:]]}"

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is there twice"
        element = Element(tag, dict(attrs))
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].inside.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        return self.root.all(tag)

    def section(self, place: str) -> Element:
        return next(element for element in self.all("section") if element.attributes["id"] == place)

    def table(self, name: str) -> dict[str, list[str]]:
        """The rows of a table by their first cell, the header among them."""
        found = next(element for element in self.all("table") if element.attributes["aria-label"].startswith(name))
        rows = [[cell.text for cell in row.inside] for row in found.all("tr")]
        return {row[0]: row[1:] for row in rows}
