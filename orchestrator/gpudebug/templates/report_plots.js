// The plots, each drawn when it is first seen. Every text in them is escaped: plotly reads some HTML in texts.

const CONFIG = {
  displaylogo: false,
  displayModeBar: "hover",
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
  showSendToCloud: false,
  plotlyServerURL: "",
  typesetMath: false,
  responsive: true,
  logging: 0,
};
const FURTHER = 0.4;
const BAR = 0.02;
const DASHES = ["solid", "dot", "dash", "dashdot"];
const MARGIN = { l: 52, r: 12, t: 28 };
const UNIFIED = 8;
// Rows of a legend, of so many pixels each: what has more scrolls and leaves the plot its room.
const LEGEND_ROWS = 4;
const LEGEND_ROW = 19;
const drawn = new Set();

function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = "var(--" + name + ")";
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function palette() {
  const names = ["text", "soft", "line", "card", "accent", "before"];
  return Object.fromEntries(names.map((name) => [name, colour(name)]));
}

function escaped(text) {
  const controls = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
  const named = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  return String(text).replace(controls, "\ufffd").replace(/[&<>]/g, (c) => named[c]);
}

function median(values) {
  const sorted = values.filter((v) => v !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : null;
}

function hypothesisOf(number) {
  return reportData().hypotheses.find((h) => String(h.number) === number);
}

// The runs of both sides; the newest of each side is drawn bold.
function sidesOf(of) {
  const data = reportData();
  const runs = (names) => names.map((name) => data.runs[name]).filter(Boolean);
  const strong = (label, tone, names) => ({ label, tone, runs: runs(names) });
  if (of === "run") return [strong("", "accent", Object.keys(data.runs))];
  if (of === "reference") {
    const { workload, reference } = data.status.baselines;
    return [
      strong("workload", "accent", workload ? workload.runs : []),
      strong("reference", "before", reference ? reference.runs : []),
    ];
  }
  const found = hypothesisOf(of);
  return [strong("baseline", "before", found.baseline_runs), strong("trial", "accent", found.trial_runs)];
}

// Calls `make` for each run with how it is to be drawn; what it returns are traces.
function eachRun(sides, make) {
  return sides.flatMap((side, at) =>
    side.runs.flatMap((run, i) => {
      const main = i === side.runs.length - 1;
      return make(run, { side, main, under: at === 0, name: escaped(side.label ? side.label + " " + run.name.split("-")[0] : run.name) }) || [];
    })
  );
}

function lineStyle(look, colours, width, dash = "solid") {
  return {
    mode: "lines",
    opacity: look.main ? 1 : FURTHER,
    line: { color: colours[look.side.tone], width: look.main ? width : 1, dash },
  };
}

function timelineTraces(sides, colours) {
  return eachRun(sides, (run, look) =>
    run.timeline.map((device, i) => ({
      ...lineStyle(look, colours, 1.8, DASHES[i % DASHES.length]),
      type: "scatter",
      name: run.timeline.length > 1 ? look.name + " " + escaped(device.label ?? "GPU " + device.index) : look.name,
      x: device.points.map((p) => p[0]),
      y: device.points.map((p) => p[1]),
      customdata: device.points.map((p) => (p[2] === null || p[2] === undefined ? "memory unknown" : Math.round(p[2]) + " MB")),
      hovertemplate: "%{y:.1f}%, %{customdata}",
    }))
  );
}

// Above the plot one bar a side: what its newest run's warm-up and window were.
function windowShapes(sides, colours) {
  return sides.flatMap((side, i) => {
    const run = side.runs[side.runs.length - 1];
    if (!run || !run.window || !run.timeline.length) return [];
    const { start_s: start, end_s: end } = run.window;
    const low = 1.015 + (sides.length - 1 - i) * (BAR + 0.014);
    const bar = (x0, x1, opacity) => ({
      type: "rect", xref: "x", yref: "paper", x0, x1, y0: low, y1: low + BAR,
      fillcolor: colours[side.tone], opacity, line: { width: 0 },
    });
    const edge = (x) => ({
      type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: low,
      line: { color: colours[side.tone], width: 1, dash: "dot" }, opacity: 0.7,
    });
    return [bar(0, start, 0.3), bar(start, end, 1), edge(start), edge(end)];
  });
}

function timeline(sides, colours) {
  const traces = timelineTraces(sides, colours);
  const most = traces.reduce((top, t) => t.y.reduce((a, v) => Math.max(a, v === null ? 0 : v), top), 100);
  return {
    traces,
    layout: {
      shapes: windowShapes(sides, colours),
      xaxis: {
        title: { text: "seconds since launch" },
        rangemode: "tozero",
        unifiedhovertitle: { text: "%{x:.1f} s since launch" },
      },
      yaxis: { title: { text: "utilisation, %" }, range: [0, most * 1.02] },
      margin: { ...MARGIN, t: 46 },
    },
  };
}

function loss(sides, colours) {
  const traces = eachRun(sides, (run, look) =>
    run.loss_points.length
      ? {
          // If both sides are alike, the thin line is on top of the thick one.
          ...lineStyle(look, colours, look.under ? 4 : 1.6),
          type: "scatter",
          name: look.name,
          x: run.loss_points.map((p) => p[0]),
          y: run.loss_points.map((p) => p[1]),
          hovertemplate: "%{y:.4g}",
        }
      : []
  );
  const runs = sides.flatMap((side) => side.runs);
  const named = runs.find((run) => run.loss && run.loss.name);
  const place = runs.every((run) => run.loss_by === "step") ? "step" : "number of the printed value";
  return {
    traces,
    layout: {
      xaxis: {
        title: { text: place },
        unifiedhovertitle: { text: place + " %{x}" },
      },
      yaxis: { title: { text: named ? escaped(named.loss.name) : "loss" } },
    },
  };
}

function stepTimes(sides, colours) {
  const known = sides.flatMap((side) => side.runs).filter((run) => run.step_times);
  const scale = median(known.flatMap((run) => run.step_times.bins.map((b) => b[1]))) < 1 ? 1000 : 1;
  const unit = scale === 1 ? "s" : "ms";
  const traces = eachRun(sides, (run, look) => run.step_times && stepBars(run, look, colours, scale, unit));
  return {
    traces,
    layout: {
      barmode: "overlay",
      bargap: 0,
      xaxis: { title: { text: "step time, " + unit } },
      yaxis: { title: { text: "share of steps, %" }, rangemode: "tozero" },
    },
  };
}

// Other runs start hidden, as names in the legend: bars on bars cannot be read.
function stepBars(run, look, colours, scale, unit) {
  const bins = run.step_times.bins;
  const total = bins.reduce((sum, b) => sum + b[2], 0);
  return {
    type: "bar",
    name: look.name,
    visible: look.main ? true : "legendonly",
    opacity: 0.65,
    marker: { color: colours[look.side.tone], line: { width: 0 } },
    x: bins.map((b) => ((b[0] + b[1]) / 2) * scale),
    width: bins.map((b) => (b[1] - b[0]) * scale),
    y: bins.map((b) => (100 * b[2]) / total),
    customdata: bins.map((b) => (b[0] * scale).toPrecision(3) + " to " + (b[1] * scale).toPrecision(3) + " " + unit),
    hovertemplate: "%{y:.1f}% of steps took %{customdata}",
  };
}

// Runs of both parts on the level of the unchanged program; the thresholds follow the level.
function course(sides, colours, of) {
  const { points, effect, metric, unit, lower, failure, success } = hypothesisOf(of).course;
  const during = effect ? [...points, { ...effect, run: "effect", level: effect.before }] : points;
  const part = (name) => points.filter((p) => p.part === name);
  const line = (name, rows, key, style) => ({
    type: "scatter", mode: "lines", name,
    x: rows.map((p) => escaped(p.run.split("-")[0])),
    y: rows.map((p) => p[key]),
    text: rows.map((p) => escaped(p.run)),
    hovertemplate: "%{y:.4~g}",
    ...style,
  });
  const edge = (key, style) =>
    line("95 % band of the level", points, key, { line: { width: 0, color: colours.before }, ...style });
  const marks = (tone, symbol) => ({
    mode: "markers", marker: { color: colours[tone], size: 9, symbol }, hovertemplate: "%{y:.4~g}, run %{text}",
  });
  const dashed = (dash) => ({ line: { color: colours.soft, width: 1, dash } });
  const by = (value) => value + (metric === "gpu_util" ? "pp" : "x");
  const traces = [
    edge("low", { showlegend: false }),
    edge("high", { fill: "tonexty", fillcolor: colours.before.replace("rgb(", "rgba(").replace(")", ", 0.2)") }),
    line("level", during, "level", { line: { color: colours.before, width: 1.8 } }),
    line("failure, " + by(failure), during, "failure", dashed("dot")),
    line("success, " + by(success), during, "success", dashed("dash")),
    line("unchanged", part("baseline"), "value", marks("before", "circle")),
    line("with the change", part("trial"), "value", marks("accent", "diamond")),
  ];
  return {
    traces: effect ? [...traces, effectTrace(effect, colours)] : traces,
    layout: {
      xaxis: { type: "category", title: { text: "run" }, unifiedhovertitle: { text: "%{x}" } },
      yaxis: {
        type: metric === "gpu_util" ? "linear" : "log",
        title: { text: escaped(metric + (unit ? ", " + unit : "") + (lower ? " (less is better)" : "")) },
      },
    },
  };
}

function effectTrace(effect, colours) {
  return {
    type: "scatter", mode: "markers", name: "level and effect",
    x: ["effect"],
    y: [effect.after],
    error_y: { symmetric: false, array: [effect.high - effect.after], arrayminus: [effect.after - effect.low], color: colours.accent },
    marker: { color: colours.accent, size: 9, symbol: "diamond-open" },
    text: [escaped(effect.text)],
    hovertemplate: "%{y:.4~g}, effect %{text}",
  };
}

const MAKERS = { timeline, loss, steps: stepTimes, course };

function axis(own, colours) {
  return {
    gridcolor: colours.line,
    zerolinecolor: colours.line,
    linecolor: colours.line,
    ...own,
    title: { ...own.title, font: { size: 12, color: colours.soft }, standoff: 6 },
  };
}

// The width of a name in the legend, and the room for the axis, its title and the rows of the legend.
function legendRoom(names, width) {
  const entry = 2 + 6 * Math.max(...names.map((name) => name.length), 0);
  const perRow = Math.max(1, Math.floor((width - MARGIN.l - MARGIN.r) / (entry + 45)));
  return { entry, below: 46 + LEGEND_ROW * Math.min(LEGEND_ROWS, Math.ceil(names.length / perRow)) };
}

function layoutOf(own, traces, colours, width) {
  const { entry, below } = legendRoom(traces.map((t) => t.name), width);
  const lines = traces.every((t) => t.type === "scatter") && traces.length <= UNIFIED;
  return {
    ...own,
    margin: { ...(own.margin || MARGIN), b: below },
    hovermode: lines ? "x unified" : "closest",
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.soft },
    xaxis: axis(own.xaxis, colours),
    yaxis: axis(own.yaxis, colours),
    legend: {
      orientation: "h", traceorder: "normal", x: 0, y: 0, yref: "container", yanchor: "bottom",
      entrywidth: entry, entrywidthmode: "pixels", font: { size: 11 }, maxheight: LEGEND_ROWS * LEGEND_ROW,
    },
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.soft, font: { color: colours.text }, namelength: -1 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.soft, activecolor: colours.accent },
    showlegend: true,
    // The zoom stays when the colours change.
    uirevision: "same",
  };
}

// A screen reader gets the same figures from the table beside the plot.
function silence(element) {
  const drawings = [...element.querySelectorAll("svg"), document.getElementById("js-plotly-tester")];
  for (const svg of drawings) if (svg) svg.setAttribute("aria-hidden", "true");
  // Before its version 4 plotly's buttons were links without a name.
  for (const button of element.querySelectorAll("a.modebar-btn")) {
    button.setAttribute("role", "button");
    button.setAttribute("aria-label", button.dataset.title);
  }
}

function draw(element) {
  const colours = palette();
  const { traces, layout } = MAKERS[element.dataset.plot](sidesOf(element.dataset.of), colours, element.dataset.of);
  drawn.add(element);
  return Plotly.react(element, traces, layoutOf(layout, traces, colours, element.clientWidth), CONFIG).then(() => {
    silence(element);
    element.dataset.drawn = "true";
  });
}

function drawWhenSeen() {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((e) => e.isIntersecting)) {
        seen.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "200px" }
  );
  for (const element of document.querySelectorAll(".plot")) seen.observe(element);
}

onThemeChange(() => drawn.forEach(draw));
document.addEventListener("DOMContentLoaded", drawWhenSeen);
