// Runs this program once more on the Node that "npm ci" has installed, because the caller's is too old. Plain JavaScript for any Node.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const OLDEST_NODE = 24
const PACKAGED_NODE = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))
/** Set for the second start, which must never start a third. */
const GUARD = 'THV_PACKAGED_NODE'

export function isTooOld() {
  return Number(process.versions.node.split('.')[0]) < OLDEST_NODE
}

/** Replaces this process as far as Node can: same arguments, input, output, signals and exit code. Never returns. */
export async function runOnPackagedNode(node = PACKAGED_NODE) {
  if (!existsSync(node) || process.env[GUARD] !== undefined) {
    console.error(
      `thv: Node ${OLDEST_NODE} or newer is required; this is ${process.version}. Run "npm ci" in the repository to install one.`,
    )
    process.exit(1)
  }
  // A terminal sends Ctrl-C to both processes; other senders know only this one. The handlers come first: a signal that arrives while
  // the child starts would otherwise end this process and leave the child behind.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit', env: { ...process.env, [GUARD]: '1' } })
  const [code, signal] = await new Promise((resolve) => {
    child.once('error', (error) => {
      console.error(`thv: cannot start ${node}: ${error.message}`)
      resolve([1])
    })
    child.once('exit', (...end) => resolve(end))
  })
  if (signal) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  }
  process.exit(code ?? 1)
}

/** In the second process: what it starts itself may be too old again, and then gets a packaged Node too. */
export function forgetFirstStart() {
  delete process.env[GUARD]
}
