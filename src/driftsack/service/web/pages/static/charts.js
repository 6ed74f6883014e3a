// Draws the charts of a campaign with uPlot, from columns of numbers sent by the service.
"use strict";
(() => {
  const box = document.getElementById("charts");
  if (!box) return;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const plots = new Map(), shown = new Map(); // by element: the plot, and its current chart
  let data = null;

  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6) return (value / 1e6).toPrecision(3).replace(/\.?0+$/, "") + "M";
    if (size >= 1e4) return (value / 1e3).toPrecision(3).replace(/\.?0+$/, "") + "k";
    return String(+value.toPrecision(3));
  };
  const ticks = (_, values) => {
    const inThousands = Math.max(...values.map(Math.abs)) >= 1e4;
    return values.map((v) => (inThousands && v ? +(v / 1e3).toPrecision(3) + "k" : short(v)));
  };
  const requests = (_, values) => values.map((v) => (v < 1e6 ? v.toLocaleString("en") : short(v)));
  const line = (label, index, more) => ({ label, stroke: color(`--c${index % 8}`), width: 2, points: { show: false }, value: (_, v) => (v == null ? "" : short(v)), ...more });
  const edge = (label, index) => line(label, index, { width: 0, class: "edge" });
  const band = (index) => ({ series: [index, index + 1], fill: color("--band") });

  // The first few outcomes can make a price jump, so the axis omits peaks far above the 98th percentile, and the page says so.
  const usual = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const most = sorted[Math.floor(0.98 * (sorted.length - 1))] || 0;
    return sorted.length && sorted[sorted.length - 1] > 2 * most && most > 0 ? 1.3 * most : null;
  };
  const kinds = {
    budget: (d, k) => {
      const b = d.budgets[k];
      return {
        columns: [b.x, b.left, b.even, b.middle, b.high, b.low],
        series: [line("left", k), line("even pace", 7, { dash: [4, 4], width: 1, stroke: color("--muted") }), line("forecast", k, { dash: [6, 3] }), edge("high", k), edge("low", k)],
        bands: [band(4)], zero: true,
      };
    },
    price: (d, k) => ({ columns: [d.prices.x, d.prices.lines[k].y], series: [line(d.prices.lines[k].name, k)], zero: true, top: usual(d.prices.lines[k].y) }),
    shares: (d) => ({ columns: [d.shares.x, ...d.shares.lines.map((l) => l.y)], series: d.shares.lines.map((l, k) => line(l.name, k, { value: (_, v) => (v == null ? "" : Math.round(100 * v) + "%") })), percent: true }),
    regret: (d) => ({
      columns: [d.regret.x, d.regret.y, d.regret.high, d.regret.low],
      series: [line("regret", 0), edge("high", 0), edge("low", 0)],
      bands: [band(2)],
    }),
  };

  const options = (place, byTime) => {
    const chart = shown.get(place);
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const range = chart.percent ? [0, 1] : chart.zero ? (_, low, high) => [0, shown.get(place).top || (high > 0 ? high * 1.05 : 1)] : undefined;
    return {
      width: place.clientWidth, height: 220, padding: [null, 24, null, null], legend: { live: true }, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: byTime }, y: range ? { range } : {} },
      axes: [{ ...axis, size: byTime ? 50 : 32, space: 64, values: byTime ? undefined : requests }, { ...axis, size: 54, values: chart.percent ? (_, values) => values.map((v) => Math.round(100 * v) + "%") : ticks }],
      series: [{ label: byTime ? "time" : "request", value: byTime ? undefined : (_, v) => (v == null ? "" : Math.round(v).toLocaleString("en")) }, ...chart.series],
      bands: chart.bands || [],
    };
  };

  const draw = (fresh) => {
    if (!data) return;
    for (const place of box.querySelectorAll("[data-chart]")) {
      const chart = kinds[place.dataset.chart](data, Number(place.dataset.index || 0));
      let plot = plots.get(place);
      if (plot && (fresh || plot.series.length !== chart.series.length + 1)) { plot.destroy(); plot = null; }
      shown.set(place, chart);
      place.classList.toggle("nothing", chart.columns[0].length < 2);
      place.classList.toggle("cut", Boolean(chart.top));
      if (plot) plot.setData(chart.columns);
      else {
        plot = new uPlot(options(place, data.axis.time), chart.columns, place);
        plots.set(place, plot);
      }
    }
  };

  const load = async () => {
    try {
      const answer = await fetch(box.dataset.figures, { headers: { "HX-Request": "true" } });
      if (answer.ok && answer.headers.get("content-type") === "application/json") { data = await answer.json(); draw(false); }
    } catch { /* the stream reports a lost connection */ }
  };
  document.body.addEventListener("changed", load);
  document.body.addEventListener("redraw", () => draw(true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
  new ResizeObserver(() => { for (const [place, plot] of plots) if (place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: 220 }); }).observe(box);
  load();
})();
