"""How the site is made: `make site`."""

import warnings

import calibrant

project = "calibrant"
copyright = "the calibrant authors"
version = release = calibrant.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["evidence/claims/*.json", "sg_execution_times.rst", "**/sg_execution_times.rst"]
html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
html_theme_options = {"navbar_end": ["theme-switcher"], "show_prev_next": False, "show_toc_level": 2}
# One line at 1,280 pixels: four pages, and the search as a sign.
html_theme_options |= {"header_links_before_dropdown": 4, "navbar_persistent": ["search-button"]}
html_theme_options["secondary_sidebar_items"] = ["page-toc"]  # and no link to the source: guides get its room
html_sidebars = {"*": []}  # pages that no others belong to
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4

# Tables of measurements name files of the repository beside the site; GitHub shows these, the site does not.
suppress_warnings = ["myst.header", "ref.python"]  # the latter: two classes are called Comparison
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_use_ivar = True
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["guides"],
    "filename_pattern": r"/guide_",
    "ignore_pattern": r"__init__",
    "download_all_examples": False,
    "min_reported_time": 1000,
    "show_signature": False,
    "capture_repr": (),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
}
# Guides show warnings as a reader meets them, without the path of the machine that built the site.
warnings.formatwarning = lambda message, category, *place, **line: f"{category.__name__}: {message}\n"
# What scikit-learn adds to every estimator, with words of its own glossary.
_ADDED = ("fit", "score", "predict", "predict_proba", "partial_fit", "transform")
autodoc_default_options = {"exclude-members": ", ".join(f"set_{name}_request" for name in _ADDED)}
