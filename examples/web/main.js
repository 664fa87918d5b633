// The page: draws, and asks the module for everything that is computed.
import init, { Digits, Sentences } from "./zyx_web.js";

const at = (id) => document.getElementById(id);
const bytes = async (name) => new Uint8Array(await (await fetch(`data/${name}`)).arrayBuffer());
const breathe = () => new Promise((resolve) => setTimeout(resolve));

/// Does something, and shows the sentence of what fails.
async function guarded(work) {
  try {
    at("error").textContent = "";
    return await work();
  } catch (error) {
    at("error").textContent = error.message ?? String(error);
    throw error;
  }
}

// ---- the curve ----

function curve(losses) {
  const canvas = at("loss"), pen = canvas.getContext("2d");
  const { width, height } = canvas, most = Math.max(2.5, ...losses);
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = pen.strokeStyle = "#888";
  pen.font = "13px system-ui";
  for (let y = 0; y <= most; y += 0.5) {
    const line = height - (y / most) * (height - 12);
    pen.globalAlpha = 0.3;
    pen.fillRect(0, line, width, 1);
    pen.globalAlpha = 1;
    pen.fillText(y.toFixed(1), 2, line - 3);
  }
  pen.strokeStyle = "#36c";
  pen.lineWidth = 2;
  pen.beginPath();
  losses.forEach((loss, i) => {
    pen.lineTo((i / Math.max(1, losses.length - 1)) * width, height - (loss / most) * (height - 12));
  });
  pen.stroke();
}

// ---- the pad ----

const pad = at("pad"), ink = pad.getContext("2d", { willReadFrequently: true });
let last = null;

function clear() {
  ink.fillStyle = "#000";
  ink.fillRect(0, 0, pad.width, pad.height);
  at("guess").textContent = "";
  at("bars").replaceChildren();
}

pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  last = [event.offsetX, event.offsetY];
});
pad.addEventListener("pointermove", (event) => {
  if (!last) return;
  ink.strokeStyle = "#fff";
  ink.lineCap = "round";
  ink.lineWidth = pad.width / 9;
  ink.beginPath();
  ink.moveTo(...last);
  last = [event.offsetX, event.offsetY];
  ink.lineTo(...last);
  ink.stroke();
});
for (const end of ["pointerup", "pointercancel"]) {
  pad.addEventListener(end, () => {
    last = null;
    recognise();
  });
}

/// The drawing as the network's images are: its box in the middle, averaged over cells.
function drawn([height, width]) {
  const { data } = ink.getImageData(0, 0, pad.width, pad.height);
  const lit = (x, y) => (x < 0 || y < 0 || x >= pad.width || y >= pad.height ? 0 : data[4 * (y * pad.width + x)] / 255);
  let [left, right, top, bottom] = [pad.width, 0, pad.height, 0];
  for (let y = 0; y < pad.height; y++) {
    for (let x = 0; x < pad.width; x++) {
      if (lit(x, y) < 0.5) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  }
  if (left > right) return null;
  // As high as the image, and as wide as it is drawn, but no thinner than a third.
  const tall = bottom - top + 1, wide = Math.max(right - left + 1, tall / 1.6);
  const middle = (left + right) / 2;
  const pixels = new Float32Array(height * width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      let sum = 0;
      for (let i = 0; i < 64; i++) {
        const y = top + ((row + ((i >> 3) + 0.5) / 8) * tall) / height;
        const x = middle + ((column + ((i & 7) + 0.5) / 8) / width - 0.5) * wide;
        sum += lit(Math.floor(x), Math.floor(y));
      }
      pixels[row * width + column] = sum / 64;
    }
  }
  return pixels;
}

async function recognise() {
  const pixels = model && !busy && drawn(model.size());
  if (!pixels) return;
  const likely = await guarded(() => model.recognise(pixels));
  const best = likely.indexOf(Math.max(...likely));
  at("guess").textContent = `This is a ${best}.`;
  at("bars").replaceChildren(...[...likely].flatMap((p, digit) => {
    const [name, bar, share] = ["span", "i", "span"].map((tag) => document.createElement(tag));
    name.textContent = digit;
    bar.style.width = `${100 * p}%`;
    share.textContent = `${(100 * p).toFixed(1)} %`;
    return [name, bar, share];
  }));
  return best;
}

// ---- training ----

let model = null, busy = false;

/// Trains for so many steps; gives the last losses, the accuracy and steps per second.
async function train(spec, steps) {
  busy = true;
  at("train").disabled = true;
  try {
    model?.free();
    model = null;
    at("state").textContent = "opening the device";
    const files = [await bytes("images.idx3-ubyte"), await bytes("labels.idx1-ubyte")];
    const opened = performance.now();
    const fresh = await Digits.open(spec, ...files);
    at("state").textContent = fresh.device();
    const losses = [await fresh.step()];
    const first = performance.now() - opened;
    const start = performance.now();
    while (losses.length < steps) {
      losses.push(await fresh.step());
      if (losses.length % 5 === 0 || losses.length === steps) {
        const rate = (1000 * (losses.length - 1)) / (performance.now() - start);
        curve(losses);
        at("numbers").textContent =
          `step ${losses.length} of ${steps}, loss ${losses.at(-1).toFixed(4)}, ${rate.toFixed(1)} steps/s`;
        await breathe();
      }
    }
    const rate = (1000 * (losses.length - 1)) / (performance.now() - start);
    const accuracy = await fresh.accuracy();
    at("numbers").textContent += `; ${(100 * accuracy).toFixed(1)} % of 360 images held out are right`;
    model = fresh;
    return { device: fresh.device(), first, rate, accuracy, losses };
  } finally {
    busy = false;
    at("train").disabled = false;
  }
}

at("clear").addEventListener("click", clear);
at("train").addEventListener("click", () => guarded(() => train(at("device").value, 300)));
clear();

// ---- sentences ----

let encoder = null;

/// The files of an encoder: those that were chosen, or the tiny one's.
async function encoderFiles() {
  const chosen = [...at("files").files];
  return Promise.all(["config.json", "model.safetensors", "tokenizer.json"].map(async (name) => {
    if (chosen.length === 0) return bytes(`tiny-bert/${name}`);
    const file = chosen.find((file) => file.name === name);
    if (!file) throw new Error(`choose ${name}, too: all three files of a model`);
    return new Uint8Array(await file.arrayBuffer());
  }));
}

/// Cosines of the sentences, row by row, and the seconds that they took.
async function compare(spec) {
  encoder ??= await Sentences.open(spec, ...(await encoderFiles()));
  const lines = at("lines").value.split("\n").filter((line) => line.trim());
  const start = performance.now();
  const cosines = await encoder.similar(lines.join("\n"));
  const seconds = (performance.now() - start) / 1000;
  at("encoder").textContent = `${lines.length} sentences in ${seconds.toFixed(3)} s`;
  at("cosines").replaceChildren(...lines.map((line, i) => {
    const row = document.createElement("tr");
    const cells = [...cosines.slice(i * lines.length, (i + 1) * lines.length)].map((x) => x.toFixed(2));
    for (const text of [line, ...cells]) row.insertCell().textContent = text;
    return row;
  }));
  return { cosines: [...cosines], seconds };
}

for (const choice of ["files", "device"]) {
  at(choice).addEventListener("change", () => {
    encoder?.free();
    encoder = null;
  });
}
at("compare").addEventListener("click", () => guarded(() => compare(at("device").value)));

// ---- a test drives the page: `?test=cpu&steps=60` reports to the server that it came from ----

/// Draws a one as a hand would.
async function draw() {
  const move = (kind, x, y) =>
    pad.dispatchEvent(new PointerEvent(kind, { pointerId: 1, clientX: pad.getBoundingClientRect().x + x, clientY: pad.getBoundingClientRect().y + y }));
  pad.setPointerCapture = () => {};
  move("pointerdown", 140, 40);
  for (let y = 40; y <= 240; y += 10) move("pointermove", 140, y);
  last = null;
  return recognise();
}

guarded(async () => {
  await init();
  at("state").textContent = "ready";
  const asked = new URLSearchParams(location.search);
  if (!asked.has("test")) return;
  let report;
  try {
    const { losses, ...rest } = await train(asked.get("test"), Number(asked.get("steps") ?? 60));
    report = { ...rest, losses: losses.slice(0, 5), end: losses.at(-1), guess: await draw() };
    at("lines").value = asked.get("lines");
    report = { ...report, ...(await compare(asked.get("test"))) };
  } catch (error) {
    report = { error: error.message ?? String(error) };
  }
  await fetch("report", { method: "POST", body: JSON.stringify(report) });
});
