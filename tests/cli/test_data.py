"""The verb data: the cards of data sets."""

from command_line import refused, run


def test_show():
    result = run("data", "show", "places205-synthetic")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "places205-synthetic",
        "  size      2,500,000 rows × 128 features, 205 classes",
    ]
    assert [line.split()[0] for line in lines[2:]] == [
        *("source", "licence", "note", "checksum", "where")
    ]
    assert run("data", "show", "mnist", "--json").stdout.startswith('{\n  "name": "mnist"')
    result = run("data", "show", "nope")
    assert result.exit_code == 2
    assert result.stderr.startswith("streamhash: 'nope' is not a data set; pass one of digits,")


def test_fetch_says_what_needs_no_download():
    refused(
        run("data", "fetch", "digits"),
        "fetch: 'digits' needs no download; use load_data('digits').",
    )
