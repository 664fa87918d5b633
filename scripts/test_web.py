"""Opens the page of `examples/web` in a headless browser, lets it train, and checks what it reports.

    scripts/web.sh && python3 scripts/test_web.py [--browser chromium] [--steps N] [--devices cpu,wgpu]

The page trains on the CPU, recognises a drawn digit, embeds sentences, and sends its report to the server here. What
the sentences have in common must be what PyTorch found. By WebGPU, which a
browser without a GPU emulates a thousand times slower, it trains for five steps, whose losses must be those of the
CPU. WebGPU may be missing in a headless browser: then a line says so by name. Exit status 1 if a report is missing or
wrong.
"""

import argparse
import array
import functools
import http.server
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

FOLDER = pathlib.Path(__file__).parent.parent / "target/web"
FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]
WEBGPU = ["--enable-unsafe-webgpu", "--enable-features=Vulkan,WebGPU", "--use-webgpu-adapter=swiftshader"]
STEPS = 5
# Those that `expected.safetensors` has the embeddings of.
SENTENCES = ["Alice was beginning to get very tired.", "The Queen of Hearts!", "Off with his head, she said."]


class Server(http.server.SimpleHTTPRequestHandler):
    reports = queue.Queue()

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.reports.put(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def cosines():
    """How near the sentences are to each other by the embeddings that PyTorch made, row by row."""
    file = (FOLDER / "data/tiny-bert/expected.safetensors").read_bytes()
    start = 8 + int.from_bytes(file[:8], "little")
    first, end = json.loads(file[8:start])["embeddings"]["data_offsets"]
    values = array.array("f", file[start + first:start + end])
    width = len(values) // len(SENTENCES)
    rows = [values[i * width:(i + 1) * width] for i in range(len(SENTENCES))]
    return [sum(x * y for x, y in zip(a, b)) for a in rows for b in rows]


def near(found, expected, bound):
    return len(found) == len(expected) and all(abs(a - b) < bound for a, b in zip(found, expected))


def report(browser, url, flags, limit):
    """What the page reports, or None in time."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *FLAGS, *flags, f"--user-data-dir={profile}", "--enable-logging=stderr"]
        command += ["--remote-debugging-port=0", url]
        page = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)
        said = []
        threading.Thread(target=lambda: said.extend(page.stderr), daemon=True).start()
        try:
            return Server.reports.get(timeout=limit)
        except queue.Empty:
            lines = said
            print("".join(lines[-20:]), file=sys.stderr)
            return None
        finally:
            # The browser's other processes, too.
            os.killpg(page.pid, signal.SIGKILL)
            page.wait()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--browser", default="chromium")
    arguments.add_argument("--steps", type=int, default=120)
    arguments.add_argument("--limit", type=float, default=240)
    arguments.add_argument("--devices", default="cpu,wgpu")
    options = arguments.parse_args()
    handler = functools.partial(Server, directory=FOLDER)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    failed, first = False, None
    for device in options.devices.split(","):
        url = f"http://127.0.0.1:{server.server_port}/index.html?test={device}&steps={options.steps if device == 'cpu' else STEPS}"
        url += f"&lines={urllib.parse.quote(chr(10).join(SENTENCES))}"
        found = report(options.browser, url, WEBGPU if device == "wgpu" else [], options.limit)
        if device == "wgpu" and found and "no adapter" in found.get("error", ""):
            print(f"skipped web {device}: {found['error']}")
            continue
        right = found is not None and "error" not in found
        if right and device == "cpu":
            first = found["losses"]
            right = found["accuracy"] > 0.9 and found["guess"] == 1
        elif right and first:
            right = near(found["losses"], first, 1e-4)
        right = right and near(found["cosines"], cosines(), 1e-5)
        print(f"{'ok     ' if right else 'FAILED '} web {device}: {json.dumps(found)}")
        failed |= not right
    return failed


if __name__ == "__main__":
    sys.exit(main())
