"""Views on paper, measured in the PDF files that a browser prints."""

import re

import pytest

import gallery as states

# A browser writes where links stand in a PDF: the titles of panes become links, the row
# or the part of a picture that follows each title, and all that ends above another.
LINKED = """() => addEventListener("beforeprint", () => {
  const linked = (made, name) => {
    if (!made.matches("svg")) {
      const link = document.createElement("a");
      link.href = `https://paper.test/${name}`;
      link.append(...made.childNodes);
      made.append(link);
      return;
    }
    const [link, all] = ["a", "rect"].map(tag =>
      document.createElementNS("http://www.w3.org/2000/svg", tag));
    const {x, y, width, height} = made.viewBox.baseVal;
    for (const [key, value] of Object.entries({x, y, width, height, fill: "none"}))
      all.setAttribute(key, value);
    link.setAttribute("href", `https://paper.test/${name}`);
    link.append(all);
    made.append(link);
  };
  document.querySelectorAll(".mj-pane").forEach((pane, number) => {
    const all = [...pane.querySelectorAll("svg.mj-scene, tbody tr")]
      .filter(one => one.getClientRects().length)
      .map(one => one.matches("svg") ? one :
        [...one.cells].find(cell => cell.textContent.trim()))
      .filter(Boolean);
    const title = pane.querySelector(".mj-title");
    if (title && all.length) linked(title, `title${number}`);
    all.forEach((one, at) => linked(one, at ? "other" : `next${number}`));
  });
})"""
# Of a sheet of A4, 842 points high, so many may stay white below what was printed.
MOST_WHITE = 200


def places(pdf):
    """What is linked: its name, the number of its page, and where its lower end is, in
    points from the foot of the page."""
    objects = dict(re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", pdf, re.DOTALL))
    (kids,) = re.findall(rb"/Kids \[([^\]]*)\]", pdf)
    found = []
    for page, kid in enumerate(re.findall(rb"(\d+) 0 R", kids)):
        annotations = re.search(rb"/Annots \[([^\]]*)\]", objects[kid])
        for number in re.findall(rb"(\d+) 0 R", annotations[1] if annotations else b""):
            name = re.search(rb"paper\.test/(\w+)", objects[number])[1].decode()
            foot = float(re.search(rb"/Rect \[\S+ (\S+)", objects[number])[1])
            found.append((name, page, foot))
    return found


@pytest.mark.parametrize(
    "name",
    ["fusion, huge", "grad, network", "kernel", "kernel, cards", "graph, loop",
     "stages", "vmap, layers", "placement, program"],
)  # fmt: skip
def test_sheets_are_full_and_titles_stand_with_what_they_are_of(show, name):
    page = show(states.STATES[name](), width=1200)
    page.wait_for_timeout(300)  # some rows come after the first picture
    page.evaluate(LINKED)
    found = places(page.pdf(format="A4"))
    pages = {}
    for link, number, _ in found:
        pages.setdefault(link, []).append(number)
    titles = [link for link in pages if link.startswith("title")]
    assert titles
    for title in titles:
        following = title.replace("title", "next")
        # A title of two lines, and a row of two, are two links.
        assert pages[title][-1] == pages[following][0], title
    last = max(number for _, number, _ in found)
    for sheet in range(last):
        white = min(foot for _, number, foot in found if number == sheet)
        assert white < MOST_WHITE, f"sheet {sheet + 1} of {last + 1}"
