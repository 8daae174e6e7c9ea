"""What opens when a reader asks a cell where it comes from: settings, seeds, commands, machine."""

from collections.abc import Iterable, Sequence
from html import escape

from streamhash.lab.report.comparison import Comparison, brief, heading, method_name
from streamhash.lab.report.page_parts import facts, machine_facts
from streamhash.lab.summary import METRICS, Line

__all__ = ["CellDetails"]


class CellDetails:
    """The details of all lines on a page; cells of one line share theirs, in all tables."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self._metrics: dict[int, dict[str, None]] = {}
        self._printed: dict[int, dict[str, dict[str, float]]] = {}
        self._lines: dict[int, Line] = {}
        for comparison in comparisons:
            for entry in comparison.entries():
                for bits, line in entry.lines.items():
                    self._lines[id(line)] = line
                    wanted = self._metrics.setdefault(id(line), {})
                    wanted.update(dict.fromkeys(comparison.experiment.metrics))
                    printed = self._printed.setdefault(id(line), {})
                    for source, metric, value in _printed(comparison, line.method, bits):
                        printed.setdefault(source, {})[metric] = value
        self._numbers = {key: number for number, key in enumerate(self._lines)}

    def name(self, line: Line) -> str:
        """Return the id of a line's details."""
        return f"cell-{self._numbers[id(line)]}"

    def section(self) -> str:
        """Write the details of all lines."""
        return "".join(self._one(line) for line in self._lines.values())

    def _one(self, line: Line) -> str:
        row, name = line.rows[0], self.name(line)
        changed = ", ".join(f"{k}={v}" for k, v in row["changes"].items())
        title = f"{method_name(line.method)}, {line.n_bits} bits, {line.data}"
        hidden = {"n_bits", "random_state"}
        told = {
            "settings": f"{row['settings']}{', changed: ' + changed if changed else ''}",
            "parameters": ", ".join(
                f"{k}={v}" for k, v in row["parameters"].items() if k not in hidden
            ),
            "features": str(row["features"]),
            "learning": f"{line.seconds('learn'):.2f} processor seconds for {row['stream']:,} "
            "instances",
            **{
                source: ", ".join(f"{heading(m)} {brief(v)}" for m, v in values.items())
                for source, values in self._printed[id(line)].items()
            },
            **machine_facts(line.rows),
        }
        commands = "\n".join(str(row["command"]) for row in line.rows)
        return f"""<div popover id="{name}" class="detail">
<button popovertarget="{name}" popovertargetaction="hide" aria-label="Close">×</button>
<h3>{escape(title)}</h3>
{self._seeds(line)}
{facts(told)}
<pre>{escape(commands)}</pre>
</div>
"""

    def _seeds(self, line: Line) -> str:
        """Write a table of the values of each seed."""
        wanted = {**dict.fromkeys(METRICS), **self._metrics[id(line)]}
        metrics = [metric for metric in wanted if line.values(metric)]
        head = "".join(f'<th scope="col">{escape(heading(metric))}</th>' for metric in metrics)
        body = []
        for row in line.rows:
            values = "".join(f"<td>{brief(row['metrics'].get(metric))}</td>" for metric in metrics)
            body.append(f'<tr><th scope="row">seed {row["seed"]}</th>{values}</tr>')
        return (
            f'<div class="scroll"><table><thead><tr><td></td>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )


def _printed(comparison: Comparison, method: str, bits: int) -> Iterable[tuple[str, str, float]]:
    """Yield what was printed or measured elsewhere of a method: source, metric, value."""
    place = comparison.experiment.bits.index(bits)
    for numbers in comparison.experiment.numbers:
        if numbers.method != method:
            continue
        for metric, values in numbers.values.items():
            if values[place] == values[place]:  # not NaN, which stands for none
                source = numbers.source
                yield ("the paper" if source == "paper" else source), metric, values[place]
