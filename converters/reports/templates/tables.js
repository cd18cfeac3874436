// A click on a heading sorts a table. Long tables have a search field and a filter. Without scripts, tables show all rows.
(() => {
  const LONG = 12;
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell ? cell.dataset.sort ?? cell.textContent.trim() : "";
  };
  // Sorts numbers by value, and texts alphabetically. Cells without a value are last in both directions.
  const sort = (table, column, descending) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    const given = rows.filter(([value]) => value !== "");
    const numeric = given.every(([value]) => !Number.isNaN(Number(value)));
    const texts = new Intl.Collator(undefined, { numeric: true });
    const order = numeric ? ([a], [b]) => (a === b ? 0 : Number(a) - Number(b)) : ([a], [b]) => texts.compare(a, b);
    given.sort((a, b) => (descending ? order(b, a) : order(a, b)));
    body.append(...given.map(([, row]) => row), ...rows.filter(([value]) => value === "").map(([, row]) => row));
  };
  // For phones, on which the style sheet stacks the cells of a row.
  for (const table of document.querySelectorAll("table")) {
    const labels = table.tHead ? [...table.tHead.rows[0].cells].map((head) => head.textContent) : [];
    for (const row of table.tBodies[0].rows) {
      let column = 0;
      for (const cell of row.cells) {
        if (column && cell.colSpan === 1 && labels[column] && cell.hasChildNodes()) cell.dataset.label = labels[column];
        column += cell.colSpan;
        const content = document.createElement("span");
        content.append(...cell.childNodes);
        if (content.hasChildNodes()) cell.append(content);
      }
    }
    table.classList.add("stacked");
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("number") ? "descending" : "ascending";
        const next = { ascending: "descending", descending: "ascending" }[head.getAttribute("aria-sort")] ?? first;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", next);
        sort(table, column, next === "descending");
      });
    });
    const rows = [...table.tBodies[0].rows];
    if (rows.length < LONG) continue;
    const bar = document.createElement("div");
    bar.className = "filter";
    const text = document.createElement("input");
    text.type = "search";
    text.placeholder = `search ${rows.length} rows`;
    text.setAttribute("aria-label", "search the table");
    const count = document.createElement("output");
    bar.append(text);
    let only = null;
    const bad = rows.filter((row) => row.classList.contains("bad")).length;
    if (bad) {
      const label = document.createElement("label");
      only = document.createElement("input");
      only.type = "checkbox";
      label.append(only, ` only the ${bad} that ${table.dataset.bad ?? "differ"}`);
      bar.append(label);
    }
    bar.append(count);
    table.parentElement.before(bar);
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const show = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = (!only?.checked || row.classList.contains("bad")) && words.every((word) => texts.get(row).includes(word));
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = shown < rows.length ? `${shown} of ${rows.length} rows` : "";
    };
    text.addEventListener("input", show);
    only?.addEventListener("change", show);
    table.clear = () => {
      text.value = "";
      if (only) only.checked = false;
      show();
    };
  }
  // Shows the target of a link if it is hidden.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden) target.closest("table").clear?.();
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", reveal);
  // A second click on the same link does not change the hash.
  document.addEventListener("click", (event) => {
    if (location.hash && event.target.closest("a[href]")?.getAttribute("href") === location.hash) reveal();
  });
  reveal();
})();
