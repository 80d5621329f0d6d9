"""`flambeau demo --web`: the page that recognizes drawn digits."""

from __future__ import annotations

import re

import pytest


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    from flambeau.demo.web import write_page  # and scikit-learn, which takes seconds

    path = tmp_path_factory.mktemp("page") / "digits.html"
    assert write_page(path, epochs=3) > 0.8
    return path


def test_the_page_is_one_file(page):
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="', re.sub(r"xlink:href", "", text))
    assert "ConvolutionBackward0" in text
    assert "@" not in re.sub(r"@media|@param", "", text)


def test_the_page_works_from_disk(browser, page):
    opened = browser.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(page.as_uri())
    opened.wait_for_function("document.body.dataset.ready")
    right, corrected = opened.evaluate("""() => {
      const { show, predict, correct, samples } = window.digitsPage;
      const right = samples.filter((sample, digit) => { show(sample); return predict() === digit; }).length;
      show(samples[4]);
      correct(7);
      return [right, predict()];
    }""")
    opened.evaluate("window.digitsPage.show(window.digitsPage.samples[8])")
    opened.click("#reset")
    pad = opened.query_selector("#pad").bounding_box()
    opened.mouse.move(pad["x"] + 0.5 * pad["width"], pad["y"] + 0.3 * pad["height"])
    opened.mouse.down()  # the first stroke replaces the example
    opened.mouse.move(pad["x"] + 0.5 * pad["width"], pad["y"] + 0.7 * pad["height"], steps=8)
    opened.mouse.up()
    drawn = opened.evaluate("document.body.dataset.prediction")
    opened.close()
    assert not faults
    assert right >= 7
    assert drawn == "1"
    assert corrected == 7
