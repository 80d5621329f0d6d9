"""`flambeau demo --web`: the page that recognizes drawn digits."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from flambeau.demo.web import write_page

BROWSERS = [path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "digits.html"
    assert write_page(path, epochs=3) > 0.8
    return path


def test_the_page_is_one_file(page):
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="', re.sub(r"xlink:href", "", text))
    assert "ConvolutionBackward0" in text
    assert "@" not in re.sub(r"@media|@param", "", text)


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_page_works_from_disk(browser, page, tmp_path):
    check = page.with_name("check.html")
    script = """<script type="module">
      while (!document.body.dataset.ready) await new Promise((resolve) => setTimeout(resolve, 10));
      const { show, predict, correct, samples } = window.digitsPage;
      const right = samples.filter((sample, digit) => { show(sample); return predict() === digit; }).length;
      show(samples[4]);
      correct(7);
      document.body.dataset.checked = `${right} ${predict()}`;
    </script></body>"""
    check.write_text(page.read_text().replace("</body>", script))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
                           "--virtual-time-budget=10000", "--dump-dom", check.as_uri()],
                          capture_output=True, text=True, check=True)
    right, corrected = re.search(r'data-checked="(\d+) (\d+)"', done.stdout).groups()
    assert int(right) >= 7
    assert corrected == "7"
