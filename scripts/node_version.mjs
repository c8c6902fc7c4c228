// Imported before anything else, so that an old Node says what is wrong instead of failing on a newer feature.
const OLDEST = [20, 4];

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
  console.error(
    `skynet-scorer needs Node ${OLDEST.join(".")} or newer, and this is Node ${process.versions.node} (${process.execPath}). Install a newer Node and try again.`,
  );
  process.exit(1);
}
if (process.platform === "win32") {
  console.error("skynet-scorer runs on Linux and macOS, not on Windows. Use the Windows Subsystem for Linux.");
  process.exit(1);
}
