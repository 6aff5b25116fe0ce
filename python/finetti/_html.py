"""Results as tables for notebooks (`_repr_html_`): plain HTML, everything from outside escaped."""

from html import escape


def table(head, columns, rows, notes=()):
    """A <table> with a caption; rows are lists of texts or numbers."""
    def cell(value):
        return escape(f"{value:.6g}" if isinstance(value, float) else str(value))

    parts = [f"<table><caption>{escape(head)}</caption><thead><tr>"]
    parts += [f'<th scope="col">{escape(name)}</th>' for name in columns]
    parts.append("</tr></thead><tbody>")
    parts += ["<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows]
    parts.append("</tbody></table>")
    parts += [f"<p>{escape(note)}</p>" for note in notes]
    return "".join(parts)
