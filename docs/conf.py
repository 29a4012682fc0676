"""How the pages of this folder become a site: ``sphinx-build -W docs build/site``."""

import re
import tomllib
from pathlib import Path

import arrayhub

urls = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["urls"]

project = "arrayhub"
author = "the arrayhub authors"
version = release = arrayhub.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_copybutton"]
root_doc = "index"

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks contain their output; tests/docs/test_notebooks.py executes them

autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's Parameters sections say the types, and why
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"arrayhub {version}"
html_favicon = "_static/favicon.svg"
myst_html_meta = {
    "description": "arrayhub exchanges arrays between Python libraries, C, C++ and Rust without copies.",
    "keywords": "array, DLPack, Arrow, ragged, zero-copy, SYCL, CUDA, interoperability",
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"install": [], "faq": []}  # these pages do not have subpages to list
# Tables and pictures of these pages need the width of the window.
wide = ["libraries", "matrix", "performance", "pictures", "private_names"]
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "github_url": urls["Repository"],
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in wide}},
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = "the arrayhub authors, Apache-2.0"


def setup(app):
    """Omit the self of Cython's methods, as autodoc does for those of Python."""
    app.connect("autodoc-process-signature", without_self, priority=400)  # before numpydoc, whose result is final


def without_self(app, what, name, obj, options, signature, returns):
    if what != "method" or not signature:
        return None
    return re.sub(r"^\(self(, /(?=[,)]))?(, )?", "(", signature), returns
