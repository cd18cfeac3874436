// Adds the column heading to each cell of tables with many columns. site.css shows it on phones.
for (const table of document.querySelectorAll(".md-typeset table:not([class]):has(th:nth-child(5))")) {
  const labels = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    for (const [column, cell] of [...row.cells].entries()) {
      if (!cell.hasChildNodes()) continue;
      if (column && labels[column]) cell.dataset.label = labels[column];
      const content = document.createElement("span");
      content.append(...cell.childNodes);
      cell.append(content);
    }
  }
  table.classList.add("stacked");
}
