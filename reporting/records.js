"use strict";
// The lists of records: search, filters, sorting, and rows drawn fifty at a time. Text is only ever set as text.
(() => {
  const PAGE = 50;

  const make = (name, properties = {}, ...children) => {
    const { dataset, style, ...plain } = properties;
    const element = Object.assign(document.createElement(name), plain);
    Object.assign(element.dataset, dataset);
    for (const [key, value] of Object.entries(style ?? {})) element.style.setProperty(key, value);
    element.append(...children.filter((child) => child !== null));
    return element;
  };
  const figures = new Map();
  const asNumber = (value, digits) => {
    if (!figures.has(digits)) {
      const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      figures.set(digits, new Intl.NumberFormat("en-US", options));
    }
    return figures.get(digits).format(value);
  };

  class Records {
    constructor(root) {
      this.root = root;
      const data = JSON.parse(root.querySelector("script").textContent);
      Object.assign(this, { fields: data.fields, rows: data.rows, noun: data.noun, first: data.sort });
      this.columns = [...this.fields.entries()].filter(([, field]) => field.column); // [place, field]
      this.controls = new Map(); // key -> the input or select that narrows the list
      this.haystacks = null;
      this.build();
      this.reset();
      this.followLink();
      addEventListener("hashchange", () => this.followLink());
    }

    build() {
      const search = make("input", { type: "search", autocomplete: "off", spellcheck: false });
      let timer = 0;
      search.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => this.update(), 120);
      });
      this.controls.set("q", search);
      const labelled = [make("label", { className: "search" }, "Search", search)];
      this.fields.forEach((field, place) => {
        if (field.kind === "choice") labelled.push(this.choice(field, place));
      });
      const reset = make("button", { type: "button", textContent: "Reset" });
      reset.addEventListener("click", () => {
        this.reset();
        this.update();
      });
      this.status = make("p", { className: "status" });
      this.status.setAttribute("role", "status");
      this.more = make("button", { type: "button", className: "more" });
      this.more.addEventListener("click", () => this.draw());
      this.body = make("tbody");
      const head = make("tr", {}, this.heading("Record", "title"), ...this.columns.map(([, field]) => this.heading(field.name, field.key, field)));
      const table = make("table", {}, make("thead", {}, head), this.body);
      this.root.append(make("form", { className: "controls" }, ...labelled, reset), this.status, table, this.more);
      this.root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    }

    choice(field, place) {
      const counts = new Map();
      for (const row of this.rows) {
        const value = row[1][place];
        if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const select = make("select", {}, make("option", { value: "", textContent: "all" }));
      for (const [value, count] of [...counts].sort((a, b) => String(a[0]).localeCompare(b[0], "en", { numeric: true }))) {
        select.append(make("option", { value, textContent: `${value} (${asNumber(count, 0)})` }));
      }
      select.addEventListener("change", () => this.update());
      this.controls.set(field.key, select);
      return make("label", {}, field.name, select);
    }

    heading(name, key, field = {}) {
      const arrow = make("span", { className: "arrow" });
      const right = field.kind === "number" || field.kind === "share"; // the name ends where its figures end
      const button = make("button", { type: "button" }, ...(right ? [arrow, name] : [name, arrow]));
      const cell = make("th", { scope: "col", dataset: { key }, className: field.kind ?? "" }, button);
      button.addEventListener("click", () => {
        this.sort = this.sort === key ? `-${key}` : key;
        this.update();
      });
      return cell;
    }

    reset() {
      for (const control of this.controls.values()) control.value = "";
      this.sort = this.first;
    }

    // #name?key=value&... sets the filters and brings the list into view.
    followLink() {
      const [name, query] = location.hash.slice(1).split("?");
      if (name === this.root.id && query !== undefined) {
        this.reset();
        for (const [key, value] of new URLSearchParams(query)) {
          if (key === "sort") this.sort = value;
          else if (this.controls.has(key)) this.controls.get(key).value = value;
        }
        this.root.closest("section").scrollIntoView();
      }
      this.update();
    }

    found() {
      const words = this.controls.get("q").value.toLowerCase().split(/\s+/).filter(Boolean);
      if (words.length && this.haystacks === null) {
        const named = (values) => values.filter((value) => typeof value === "string");
        const text = ([title, values, body]) => [title, ...named(values), ...body.map((part) => part[1])].join("\n");
        this.haystacks = this.rows.map((row) => text(row).toLowerCase());
      }
      const wanted = this.fields
        .map((field, place) => [place, this.controls.get(field.key)?.value ?? ""])
        .filter(([, value]) => value !== "");
      const fits = (row) =>
        wanted.every(([place, value]) => String(this.rows[row][1][place]) === value) &&
        words.every((word) => this.haystacks[row].includes(word));
      return [...this.rows.keys()].filter(fits);
    }

    sorted(rows) {
      if (this.sort === "") return rows;
      const key = this.sort.replace(/^-/, "");
      const place = this.fields.findIndex((field) => field.key === key);
      const value = place < 0 ? (row) => this.rows[row][0] : (row) => this.rows[row][1][place];
      const way = this.sort.startsWith("-") ? -1 : 1;
      return rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === y) return a - b;
        if (x === null || y === null) return x === null ? 1 : -1; // what has no value comes last
        return (x < y ? -1 : 1) * way;
      });
    }

    update() {
      this.shown = this.sorted(this.found());
      this.drawn = 0;
      this.body.replaceChildren();
      for (const cell of this.root.querySelectorAll("thead th")) {
        const rising = this.sort === cell.dataset.key;
        if (rising || this.sort === `-${cell.dataset.key}`) cell.ariaSort = rising ? "ascending" : "descending";
        else cell.removeAttribute("aria-sort");
      }
      const all = this.shown.length === this.rows.length;
      const total = asNumber(this.rows.length, 0);
      this.status.textContent = all ? `${total} ${this.noun}` : `${asNumber(this.shown.length, 0)} of ${total} ${this.noun}`;
      this.draw();
    }

    draw() {
      const next = this.shown.slice(this.drawn, this.drawn + PAGE);
      this.body.append(...next.map((row) => this.row(row)));
      this.drawn += next.length;
      const left = this.shown.length - this.drawn;
      this.more.hidden = left <= 0;
      this.more.textContent = `Show ${Math.min(PAGE, left)} more`;
    }

    row(number) {
      const [title, values, body] = this.rows[number];
      const opener = make("button", { type: "button", className: "opener", textContent: title, ariaExpanded: "false" });
      const line = make("tr", {}, make("th", { scope: "row" }, opener));
      line.append(...this.columns.map(([place, field]) => this.cell(field, values[place])));
      opener.addEventListener("click", () => {
        const opened = line.nextElementSibling?.classList.contains("opened");
        opener.ariaExpanded = String(!opened);
        if (opened) line.nextElementSibling.remove();
        else line.after(this.opened(body));
      });
      return line;
    }

    cell(field, value) {
      const cell = make("td", { className: field.kind, dataset: { name: field.name } });
      const numeric = typeof value === "number" && field.kind !== "choice";
      cell.append(make("span", { textContent: value === null ? "–" : numeric ? asNumber(value, field.digits) : value }));
      if (field.kind === "share" && numeric) cell.style.setProperty("--share", value);
      if (field.tones[value]) cell.dataset.tone = field.tones[value];
      return cell;
    }

    opened(body) {
      const parts = body.map(([name, text]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: text })));
      const cell = make("td", { colSpan: this.columns.length + 1 }, make("dl", { className: "text" }, ...parts));
      return make("tr", { className: "opened" }, cell);
    }
  }

  for (const root of document.querySelectorAll(".records")) new Records(root);
})();
