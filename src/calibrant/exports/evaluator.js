// Answers the scores of a row by a map that calibrant wrote as JSON (format "calibrant-map", version 1).
//
//   const map = calibrant(JSON.parse(text));
//   map([2.1, 0.3, -1.0]);     // probabilities, one a class; of a map on one score: map(2.1) or map([2.1])
//   map.classes;               // what they stand for
//   map.check();               // the largest error on the golden vectors of the file
//
// A value is an array of numbers, or of one number that stands for every column.
"use strict";

function calibrant(file) {
  if (file.format !== "calibrant-map" || file.version !== 1) {
    throw new Error(`not a calibrant map of version 1: ${file.format} ${file.version}`);
  }
  const refuse = (what) => {
    throw new Error(`not a calibrant map: ${what}`);
  };
  const words = new Map([["inf", Infinity], ["-inf", -Infinity], ["nan", NaN]]);
  const number = (x) => {
    const found = words.has(x) ? words.get(x) : x;
    if (typeof found !== "number") throw new Error(`a number was expected, not ${JSON.stringify(x)}`);
    return found;
  };
  const numbers = (x) => (Array.isArray(x) ? x.map(numbers) : number(x));
  const single = file.dtype === "float32";
  const rounded = (x) => (single ? Math.fround(x) : x);
  const up = 1 + (single ? 2 ** -23 : 2 ** -52);

  // Value of column j, where one number stands for all.
  const at = (value, j) => (value.length === 1 ? value[0] : value[j]);
  const over = (width, f) => Array.from({ length: width }, (_, j) => f(j));
  const two = (f) => (node, a, b) => over(node.width, (j) => f(at(a, j), at(b, j)));
  const one = (f) => (node, a) => a.map(f);
  const row = (f) => (node, a) => [f(a)];
  const most = (a) => a.reduce((x, y) => (y > x ? y : x), -Infinity);

  function locate(edges, x) {
    let low = 0;
    let high = edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x >= edges[middle]) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function softmax(node, a) {
    const top = most(a);
    const e = a.map((x) => Math.exp(x - top));
    const sum = e.reduce((x, y) => x + y, 0);
    return e.map((x) => x / sum);
  }

  const operations = {
    input: (node, row) => row,
    constant: (node) => node.values,
    add: two((x, y) => x + y),
    sub: two((x, y) => x - y),
    mul: two((x, y) => x * y),
    div: two((x, y) => x / y),
    maximum: two(Math.max),
    minimum: two(Math.min),
    greater_equal: two((x, y) => x >= y),
    greater: two((x, y) => x > y),
    equal: two((x, y) => x === y),
    exp: one(Math.exp),
    log: one(Math.log),
    is_nan: one(Number.isNaN),
    rounded: one(rounded),
    gridded: one((x) => x + 98304 - 98304), // to multiples of 2^-36
    next_up: one((x) => x * up),
    where: (node, a, b, c) => over(node.width, (j) => (at(a, j) ? at(b, j) : at(c, j))),
    row_max: row(most),
    row_min: row((a) => -most(a.map((x) => -x))),
    row_sum: row((a) => a.reduce((x, y) => x + y, 0)),
    first_top: (node, a) => {
      const place = a.indexOf(most(a));
      return a.map((_, j) => j === place);
    },
    softmax,
    matmul: (node, a) => over(node.width, (j) => a.reduce((sum, x, i) => sum + x * node.matrix[i][j], 0)),
    column: (node, a) => [at(a, node.place)],
    stack: (node, ...parts) => parts.map((part) => part[0]),
    locate: (node, a) => over(node.width, (j) => locate(node.edges[node.groups[j]], at(a, j))),
    pick: (node, a) => over(node.width, (j) => node.table[node.groups[j]][at(a, j)]),
  };

  const constants = ["values", "matrix", "edges", "table"];
  const whole = (x, below) => Number.isInteger(x) && x >= 0 && x < below;
  for (const list of [file.nodes, file.classes]) if (!Array.isArray(list) || !list.length) refuse("nodes and classes");
  if (!whole(file.output, file.nodes.length)) refuse("its output is no node");
  const nodes = file.nodes.map((node, place) => {
    const { op, width, of = [], groups = [] } = node;
    if (!Object.prototype.hasOwnProperty.call(operations, op)) refuse(`no such operation: ${op}`);
    if ((op === "input") !== (place === 0)) refuse("its first node, and no other, is its input");
    if (!whole(width, 1e6) || !width) refuse(`a width of ${width}`);
    if (!Array.isArray(of) || !of.every((i) => whole(i, place))) refuse(`node ${place} is of nodes that are not before it`);
    const copy = { ...node };
    for (const name of constants) if (name in node) copy[name] = numbers(node[name]);
    const tables = copy.edges || copy.table;
    if (tables && !(groups.length >= width && groups.every((g) => whole(g, tables.length)))) refuse(`groups of node ${place}`);
    return copy;
  });

  function map(scores) {
    const given = (Array.isArray(scores) ? scores : [scores]).map((x) => rounded(number(x)));
    if (given.length !== nodes[0].width) throw new Error(`${nodes[0].width} scores a row, not ${given.length}`);
    const values = [];
    for (const node of nodes) {
      const parts = node.op === "input" ? [given] : (node.of || []).map((i) => values[i]);
      values.push(operations[node.op](node, ...parts));
    }
    const answer = values[file.output];
    return over(file.classes.length, (j) => at(answer, j)).map(rounded);
  }

  map.classes = file.classes;
  map.check = () => {
    let worst = 0;
    file.golden.scores.forEach((scores, i) => {
      const wanted = file.golden.probabilities[i];
      map(scores).forEach((p, j) => (worst = Math.max(worst, Math.abs(p - number(wanted[j])))));
    });
    return worst;
  };
  return map;
}

if (typeof module !== "undefined") module.exports = { calibrant };
