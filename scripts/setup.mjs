// Makes a fresh clone ready: `node scripts/setup.mjs`. Needs only Node, npm and Python; does nothing the second time.
import "./node_version.mjs";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isMain, must, output, root } from "./command.mjs";
import { digest } from "./digest.mjs";

/** Installs the npm packages where node_modules does not match package-lock.json. */
export async function setUpNode() {
  if (nodeModulesMatch()) return;
  console.log("setup: installing npm packages");
  // No package here needs an install script: the native tools come as optional packages for each platform.
  await must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
}

/** The first Python that is 3.9 or newer, as an absolute path. Ends this process where there is none. */
export function findPython() {
  const seen = [];
  for (const name of PYTHON_NAMES) {
    const found = output(name, ["-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"]);
    if (found === undefined) continue;
    const [version, executable] = [found.slice(0, found.indexOf(" ")), found.slice(found.indexOf(" ") + 1)];
    const [major, minor] = version.split(".").map(Number);
    if (major === 3 && minor >= OLDEST_PYTHON_MINOR) return executable;
    seen.push(`${name} is ${version}`);
  }
  console.error(
    `skynet-scorer needs Python 3.${OLDEST_PYTHON_MINOR} or newer; ${seen.length > 0 ? seen.join(", ") : "no python3 was found on the PATH"}. Install one and try again.`,
  );
  return process.exit(1);
}

/** Makes `.venv` with the Python package and its test tools where it is missing or stale; returns its interpreter. */
export async function setUpPython() {
  const python = join(VENV, "bin", "python");
  const stamp = join(VENV, ".stamp");
  const wanted = digest([join(root, "python", "pyproject.toml")]);
  const works = existsSync(stamp) && output(python, ["-c", ""]) !== undefined;
  if (works && readFileSync(stamp, "utf8") === wanted) return python;
  console.log("setup: making a Python environment in .venv");
  if (!works) await makeVenv(findPython());
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  // Older ones cannot install a pyproject.toml in editable mode. Costs nothing where the pip at hand will do.
  await must(python, [...pip, "pip>=21.3"]);
  await must(python, [...pip, "--editable", "python[dev]"]);
  writeFileSync(stamp, wanted);
  return python;
}

const VENV = join(root, ".venv");
const OLDEST_PYTHON_MINOR = 9;
const PYTHON_NAMES = ["python3", "python", ...[14, 13, 12, 11, 10, 9].map((minor) => `python3.${minor}`)];

async function makeVenv(python) {
  if (output(python, ["-c", "import venv, ensurepip"]) === undefined) {
    console.error(
      `${python} cannot make a virtual environment: its venv module is missing. On Debian and Ubuntu: apt-get install python3-venv.`,
    );
    process.exit(1);
  }
  await must(python, ["-m", "venv", "--clear", VENV]);
}

/** npm writes what it installed to node_modules/.package-lock.json last, so an install that was cut short does not match. */
function nodeModulesMatch() {
  const installedFile = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installedFile)) return false;
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(installedFile, "utf8")).packages;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const found = installed[path];
    if (found === undefined) return entry.optional === true && !isForThisPlatform(entry);
    return found.version === entry.version && found.integrity === entry.integrity;
  });
}

/** Where it is not sure (a libc is named, or nothing is), no: npm may have had a reason to leave it out. */
function isForThisPlatform({ os, cpu, libc }) {
  if (libc !== undefined || os === undefined || cpu === undefined) return false;
  return os.includes(process.platform) && cpu.includes(process.arch);
}

if (isMain(import.meta.url)) {
  await setUpNode();
  await setUpPython();
  console.log("setup: ready");
}
